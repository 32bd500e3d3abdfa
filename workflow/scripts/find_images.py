"""Check that every image of an index is there, and download those that may be."""

import importlib
from pathlib import Path

from stamp.config.contents import image_contents
from stamp.core.artifacts import read_table, write_json
from stamp.core.errors import run
from stamp.data.download import complete
from stamp.data.local_copies import LocalCopies


def main(smk):
    params, name = smk.params, smk.wildcards.dataset
    copies = LocalCopies(dict(params.copies))
    paths = [copies.here(path) for path in read_table(smk.input[0], dataset=name)["path"]]
    help = importlib.import_module(f"stamp.data.adapters.{params.adapter}").HELP
    found = complete(name, paths, Path(copies.here(params.root)), params.url, params.access, help)
    if params.content and not copies.places:  # a plan sees other files than copies
        image_contents.keep(paths, Path(params.contents), params.content[0])
    write_json(smk.output[0], found)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
