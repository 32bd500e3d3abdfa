"""Write the index of a data set that lies in its folder."""

import importlib
from pathlib import Path

from stamp.core.artifacts import write_table
from stamp.core.errors import run
from stamp.data.views import check_index


def main(smk):
    params, name = smk.params, smk.wildcards.dataset
    adapter = importlib.import_module(f"stamp.data.adapters.{params.adapter}")
    index = adapter.index(params.options, Path(params.root), params.seed)
    metadata = {"dataset": name, "adapter": params.adapter, "seed": params.seed}
    metadata |= {"content": params.content} if params.content else {}
    write_table(smk.output[0], check_index(index, name), metadata)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
