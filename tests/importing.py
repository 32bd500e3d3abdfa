"""A workflow that has STAMP as a module and adds a rule after its rules."""

from __future__ import annotations

from pathlib import Path

from project import DATASETS, DIGITS, ZOOS, Project

SNAKEFILE = """
configfile: "config/own.yaml"

module stamp:
    snakefile: {place}
    config: config["stamp"]
    prefix: "audit"

use rule * from stamp as stamp_*

rule best:
    default_target: True
    input: "audit/results/small_digits/leaderboard.csv"
    output: "best.txt"
    shell: "head -n 2 {{input}} | tail -n 1 | cut -d, -f2 > {{output}}"
"""


def importer(folder: Path, place: str) -> Project:
    """A new project of that kind; ``place`` is what it writes behind ``snakefile:``."""
    project = Project(folder)
    texts = {"title": "made for tests", "licence": "none", "citation": "none"}
    project.write("datasets.yaml", {key: {**texts, **one} for key, one in DATASETS.items()})
    project.write("studies/small_digits.yaml", DIGITS)
    project.write("zoo/small_digits.yaml", ZOOS["small_digits"])
    own = {"studies": ["small_digits"], "seed": 3, "device": "cpu"}
    project.write("own.yaml", {"stamp": own})
    (folder / "Snakefile").write_text(SNAKEFILE.format(place=place))
    return project
