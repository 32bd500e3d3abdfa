"""A Slurm for the tests of this folder, and small studies that ran beside it and through it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from cluster import CannotStart, Cluster, ask
from project import PHANTOM, Project
from submitting import STUDY, Submitting


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A Slurm with two fake GPUs; where there can be none, tests are skipped, and fail in CI."""
    one = Cluster(gpus=2)
    try:
        one.start()
    except CannotStart as reason:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI needs a Slurm: {reason}")
        pytest.skip(str(reason))
    yield one
    one.stop()


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with one small study of two models that nothing has run in."""
    project = Project.create(tmp_path_factory.mktemp("slurm") / "fresh", {STUDY: PHANTOM})
    zoo = project.read(f"zoo/{STUDY}.yaml")
    project.write(f"zoo/{STUDY}.yaml", {key: zoo[key] for key in ("linear", "noisy")})
    return project


@pytest.fixture(scope="session")
def local(fresh: Project) -> Project:
    """The study as this machine finishes it by itself."""
    project = fresh.copy(fresh.folder.parent / "local")
    project.finish()
    return project


@pytest.fixture(scope="session")
def submitted(cluster: Cluster, fresh: Project) -> tuple[Submitting, list[str]]:
    """The study as Slurm finishes it, and the submissions that it took."""
    project = Submitting(fresh.folder).copy(fresh.folder.parent / "submitted")
    before = len(cluster.jobs())
    project.finish()
    return project, [job.what for job in cluster.jobs()[before:]]


@pytest.fixture
def project(submitted: tuple[Submitting, list[str]], tmp_path: Path) -> Submitting:
    """A copy of the project that Slurm has finished."""
    return submitted[0].copy(tmp_path / "project")


@pytest.fixture(autouse=True)
def nothing_left(cluster: Cluster) -> Iterator[None]:
    """A test's jobs end with it."""
    yield
    ask("scancel", "--user=root")
