"""A workflow of jobs that each hold a GPU for a while, and who held which when."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

SNAKEFILE = """
rule all:
    input:
        expand("held/{{number}}.json", number=range({jobs})),


rule hold:
    output:
        "held/{{number}}.json",
    resources:
        gpu=1,
    params:
        seconds={seconds},
    script:
        "hold.py"
"""
SCRIPT = """
import json, os, time
from stamp.core.device import claim
given = os.environ["CUDA_VISIBLE_DEVICES"]
device, start = claim(snakemake.resources), time.time()
time.sleep(snakemake.params.seconds)
seen = {"given": given, "mine": os.environ["CUDA_VISIBLE_DEVICES"], "device": device}
json.dump({**seen, "start": start, "end": time.time()}, open(snakemake.output[0], "w"))
"""


def write(folder: Path, jobs: int, seconds: float) -> None:
    """Put the workflow into a folder."""
    (folder / "Snakefile").write_text(SNAKEFILE.format(jobs=jobs, seconds=seconds))
    (folder / "hold.py").write_text(SCRIPT)


def read(folder: Path) -> list[dict]:
    """What each job saw."""
    return [json.loads(path.read_text()) for path in sorted((folder / "held").glob("*.json"))]


def assert_never_shared(held: list[dict]) -> None:
    """No two jobs had one device at the same time."""
    for first, second in combinations(held, 2):
        if first["start"] < second["end"] and second["start"] < first["end"]:
            assert first["mine"] != second["mine"]
