"""Make a data set's images and write its index."""

import importlib
from pathlib import Path

from stamp.core.artifacts import write_table
from stamp.core.errors import run
from stamp.data.views import check_index


def main(smk):
    adapter = importlib.import_module(f"stamp.data.adapters.{smk.params.adapter}")
    folder = Path(smk.output.index).parent
    index = adapter.build(smk.params.options, folder, smk.params.seed)
    name = smk.wildcards.dataset
    metadata = {"dataset": name, "adapter": smk.params.adapter, "seed": smk.params.seed}
    write_table(smk.output.index, check_index(index, name), metadata)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
