"""A project whose jobs go to Slurm."""

from __future__ import annotations

import sys
from pathlib import Path

from project import Project

STUDY = "small_phantom"


class Submitting(Project):
    """A project whose runs go through sbatch by the profile, as a user's do."""

    def command(self, *arguments: str) -> list[str]:
        # jobs of seconds are looked at sooner than the profile does
        soon = ["--slurm-init-seconds-before-status-checks", "2", "--latency-wait", "30"]
        profile = ["--profile", "profiles/slurm", "--config", "device=cpu"]
        return [sys.executable, "-m", "snakemake", *profile, *soon, *arguments]

    def copy(self, folder: Path) -> Submitting:
        return Submitting(super().copy(folder).folder)
