"""Shared by all tests: the profile of property tests, and the small project, run once."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).resolve().parent))

from project import Project, made_once

# several workers share the processors: threads that wait for each other would only take from them
for library in ("OMP", "OPENBLAS"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# tables as wide as they like, whatever terminal the tests are started from
os.environ.pop("COLUMNS", None)

# no deadline: a loaded machine is slow, not wrong; in CI every run draws the same examples
settings.register_profile("stamp", deadline=None, max_examples=50)
settings.register_profile("ci", settings.get_profile("stamp"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "stamp")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole studies first: begun last, one would keep a single worker busy at the end."""
    first = ["slurm", "end_to_end", "workflow"]
    items.sort(key=lambda item: [item.path.parent.name != name for name in first])


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Project:
    """A small project whose studies have run; read it, or copy it before changing anything."""
    return made_once(tmp_path_factory, worker_id, "finished", Project.create)


@pytest.fixture
def project(finished: Project, tmp_path: Path) -> Project:
    """A copy of the finished project that a test may change."""
    return finished.copy(tmp_path / "project")
