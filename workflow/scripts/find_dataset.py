"""Write the index of a data set that lies in its folder."""

import importlib
from pathlib import Path

from stamp.core.artifacts import write_table
from stamp.core.errors import run
from stamp.data.local_copies import LocalCopies, named_again
from stamp.data.views import check_index


def main(smk):
    params, name = smk.params, smk.wildcards.dataset
    adapter = importlib.import_module(f"stamp.data.adapters.{params.adapter}")
    root = LocalCopies(dict(params.copies)).folder(params.root)
    index = adapter.index(params.options, Path(root), params.seed)
    if root != params.root:
        index = named_again(index, root, params.root)
    metadata = {"dataset": name, "adapter": params.adapter, "seed": params.seed}
    metadata |= {"content": params.content} if params.content else {}
    write_table(smk.output[0], check_index(index, name), metadata)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
