"""A folder without a project becomes one: a configuration, and a Snakefile that includes ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stamp.config.plan import CONFIG
from stamp.core.errors import UserError
from stamp.core.shipped import ROOT

COPIED = ("config/README.md", "profiles/default/config.yaml")
SNAKEFILE = '''"""The installed package's rules, run on what config/ says."""

from stamp.core.shipped import ROOT


include: f"{ROOT}/Snakefile"


rule everything:
    default_target: True
    input:
        rules.all.input,
'''


def project_texts(study: str) -> dict[str, str]:
    """The files that a folder needs beside those of a study; none where there is a project."""
    if Path(CONFIG).exists():
        return {}
    if Path("Snakefile").exists():
        raise UserError(
            f"a Snakefile, but no {CONFIG} in {Path.cwd()}: start in an empty folder, or have "
            "STAMP as a module of that workflow (docs/module.md)"
        )
    return {
        "Snakefile": SNAKEFILE,
        CONFIG: f"studies: [{study}]  # which studies run\nseed: 0  # of everything random\n",
        **{name: (ROOT / name).read_text() for name in COPIED},
    }


@contextmanager
def started(study: str, keep: bool) -> Iterator[dict[str, str]]:
    """The files that make a project of this folder; they stay if ``keep`` and nothing goes wrong.

    Snakemake plans in the folder, so these files come first.
    """
    texts = project_texts(study)
    folders = dict.fromkeys(parent for file in texts for parent in Path(file).parents[:-1])
    new = [folder for folder in folders if not folder.exists()]
    well = False
    try:
        for name, text in texts.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text)
        yield texts
        well = True
    finally:
        if not (well and keep):
            for name in texts:
                Path(name).unlink(missing_ok=True)
            for folder in new:  # the deepest first
                with suppress(OSError):
                    folder.rmdir()
