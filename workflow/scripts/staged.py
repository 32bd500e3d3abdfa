"""Run a rule's script on the job's own copies of the user's files, where a storage brought them."""

import importlib
import tempfile
from pathlib import Path

from stamp.core.errors import run
from stamp.data.local_copies import LocalCopies


def main(smk):
    params, copies = smk.params, LocalCopies(dict(smk.params.copies))
    script = importlib.import_module(Path(params.runs_staged).stem)
    if "load" in params.keys():  # noqa: SIM118
        params.load = copies.block(params.load)
    with tempfile.TemporaryDirectory(prefix="stamp-view-") as folder:
        if copies.places and "view" in smk.input.keys():  # noqa: SIM118
            smk.input.view = copies.view(smk.input.view, Path(folder))
        script.main(smk)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
