"""One machine with several GPUs: with --resources gpu=N each job of a real run has its own."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
from project import ROOT, Project

SNAKEFILE = """
rule all:
    input:
        expand("held/{number}.json", number=range(6)),


rule hold:
    output:
        "held/{number}.json",
    resources:
        gpu=1,
    script:
        "hold.py"
"""
HOLD = """
import json, os, time
from stamp.device import claim
device, start = claim(snakemake.resources), time.time()
time.sleep(0.5)
seen = {"device": device, "mine": os.environ["CUDA_VISIBLE_DEVICES"]}
json.dump({**seen, "start": start, "end": time.time()}, open(snakemake.output[0], "w"))
"""


@pytest.mark.parametrize("slots", [3, 5])
def test_each_job_has_a_device_of_its_own(slots: int, tmp_path: Path) -> None:
    """Also where more jobs are let through than there are devices: they wait for one."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "hold.py").write_text(HOLD)
    kept = Project(tmp_path).environment()
    (tmp_path / "tmp").mkdir()
    environment = {
        **{key: value for key, value in kept.items() if not key.startswith("SLURM_")},
        "CUDA_VISIBLE_DEVICES": "1,2,5",
        "PYTHONPATH": str(ROOT / "workflow" / "scripts"),
        "TMPDIR": str(tmp_path / "tmp"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "6", "--resources", f"gpu={slots}"],
        cwd=tmp_path,
        env=environment,
        text=True,
        capture_output=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    held = [json.loads((tmp_path / f"held/{number}.json").read_text()) for number in range(6)]
    assert {one["device"] for one in held} == {"cuda"}
    assert {one["mine"] for one in held} == {"1", "2", "5"}
    for first, second in combinations(held, 2):
        if first["start"] < second["end"] and second["start"] < first["end"]:
            assert first["mine"] != second["mine"]
