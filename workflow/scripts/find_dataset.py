"""Write the index of a data set that lies in its folder."""

import importlib
from pathlib import Path

from stamp.errors import run
from stamp.io import write_table
from stamp.views import check_index


def main(smk):
    params, name = smk.params, smk.wildcards.dataset
    adapter = importlib.import_module(f"stamp.datasets.{params.adapter}")
    index = adapter.index(params.options, Path(params.root), params.seed)
    provenance = {"dataset": name, "adapter": params.adapter, "seed": params.seed}
    write_table(smk.output[0], check_index(index, name), provenance)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
