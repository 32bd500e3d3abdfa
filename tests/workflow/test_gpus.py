"""One machine with several GPUs: with --resources gpu=N each job of a real run has its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import holding
import pytest
from project import ROOT, Project


@pytest.mark.parametrize("slots", [3, 5])
def test_each_job_has_a_device_of_its_own(slots: int, tmp_path: Path) -> None:
    """Also where more jobs are let through than there are devices: they wait for one."""
    holding.write(tmp_path, jobs=6, seconds=0.5)
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
    held = holding.read(tmp_path)
    assert len(held) == 6
    assert {one["device"] for one in held} == {"cuda"}
    assert {one["given"] for one in held} == {"1,2,5"}
    assert {one["mine"] for one in held} <= {"1", "2", "5"}
    holding.assert_never_shared(held)
