"""Studies on a real Slurm: the same numbers, through failures, with no more jobs than needed."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import holding
import polars as pl
from cluster import Cluster, ask, until
from project import ROOT, Project, model
from submitting import STUDY, Submitting

from stamp.cli import logs

TABLES = [
    "leaderboard.csv",
    "statistics/correlations.csv",
    "statistics/ranks.csv",
    "statistics/outranks.csv",
    "statistics/evaluations.csv",
]


def assert_same_numbers(first: Project, second: Project) -> None:
    for name in TABLES:
        texts = [each.result(f"{STUDY}/{name}").read_bytes() for each in (first, second)]
        assert texts[0] == texts[1], name


def start(project: Submitting, *arguments: str) -> subprocess.Popen[str]:
    """A run of the project in the background, its words in ``run.txt``."""
    with open(project.folder / "run.txt", "w") as words:
        return subprocess.Popen(
            project.command(*arguments),
            cwd=project.folder,
            env=project.environment(),
            stdout=words,
            stderr=subprocess.STDOUT,
            text=True,
        )


def assert_ends_well(project: Submitting, run: subprocess.Popen[str]) -> None:
    assert run.wait(timeout=600) == 0, (project.folder / "run.txt").read_text()


def group_of(name: str) -> str:
    return f"model_{STUDY}_{name}_calibrate_class_matched_score_evaluate_score"


def test_a_study_through_sbatch_has_the_numbers_of_a_local_run(
    submitted: tuple[Submitting, list[str]], local: Project
) -> None:
    assert_same_numbers(submitted[0], local)


def test_short_rules_of_a_model_are_one_submission_and_tables_are_none(
    submitted: tuple[Submitting, list[str]],
) -> None:
    key = "32-gray-bilinear"
    assert Counter(submitted[1]) == Counter(
        [
            f"make_dataset {STUDY}",
            *(f"pixels {STUDY}_{view}_{key}" for view in ("external", "source", "train")),
            *(f"train {STUDY}_{name}" for name in ("linear", "noisy")),
            *(
                f"logits {STUDY}_{view}_{name}"
                for view in ("external", "source")
                for name in ("linear", "noisy")
            ),
            *(group_of(name) for name in ("linear", "noisy")),
            f"correlate {STUDY}",
        ]
    )


def test_a_model_added_to_a_finished_study_submits_only_its_branch(
    cluster: Cluster, project: Submitting
) -> None:
    project.edit(f"zoo/{STUDY}.yaml", lambda zoo: zoo.update(new=model("linear", "New")))
    before = len(cluster.jobs())
    project.finish()
    assert Counter(job.what for job in cluster.jobs()[before:]) == Counter(
        [
            f"train {STUDY}_new",
            f"logits {STUDY}_source_new",
            f"logits {STUDY}_external_new",
            group_of("new"),
            f"correlate {STUDY}",
        ]
    )
    board = pl.read_csv(project.result(f"{STUDY}/leaderboard.csv"))
    assert set(board["model"]) == {"linear", "new", "noisy"}


def test_a_cancelled_group_is_retried_with_more_memory_and_the_study_completes(
    cluster: Cluster, project: Submitting, local: Project
) -> None:
    before = len(cluster.jobs())
    run = start(project, "--forcerun", f"results/{STUDY}/calibration/linear.json")
    what = f"model_{STUDY}_linear_calibrate_class_matched_score_score"
    ask("scancel", cluster.running(what).id)
    assert_ends_well(project, run)
    group = [job for job in cluster.jobs()[before:] if job.what == what]
    assert [job.state for job in group] == ["CANCELLED", "COMPLETED"]
    assert [job.memory for job in group] == ["2000M", "4000M"]
    assert_same_numbers(project, local)
    assert_logs_of_both_attempts(project, "score", [job.id for job in group])


def assert_logs_of_both_attempts(project: Submitting, rule: str, ids: list[str]) -> None:
    """`python -m stamp logs` leads from a job to the SLURM logs of its attempts."""
    found = logs.latest(project.folder)
    assert found is not None
    (job,) = [job for job in found.jobs.values() if job.name == f"{rule} {STUDY} linear"]
    assert (job.state, job.attempts) == ("finished", 2)
    assert [one.id for one in job.submissions] == ids
    assert [one.status for one in job.submissions] == ["failed", "COMPLETED"]
    assert all(f"rule {rule}:" in one.log.read_text() for one in job.submissions[-1:])
    text = logs.listing(found, project.folder, STUDY, failed=False)
    assert f"finished   {rule} {STUDY} linear  (2 attempts)" in text


def test_a_job_whose_node_dies_is_retried_and_the_study_completes(
    cluster: Cluster, project: Submitting, local: Project
) -> None:
    before = len(cluster.jobs())
    what = f"correlate {STUDY}"

    def states() -> list[str]:
        return [job.state for job in cluster.jobs()[before:] if job.what == what]

    run = start(project, "--forcerun", f"results/{STUDY}/statistics/correlations.csv")
    cluster.running(what)
    cluster.lose_node()
    try:
        until(lambda: "NODE_FAIL" in states(), "the node to be missed", patience=300)
    finally:
        cluster.node()
    assert_ends_well(project, run)
    assert states() == ["NODE_FAIL", "COMPLETED"]
    assert_same_numbers(project, local)


def test_two_gpu_jobs_never_share_one_gpu(cluster: Cluster, tmp_path: Path) -> None:
    """Four jobs that hold a GPU for a while, on two GPUs, through the same profile."""
    shutil.copytree(ROOT / "profiles" / "slurm", tmp_path / "profiles" / "slurm")
    holding.write(tmp_path, jobs=4, seconds=4)
    project = Submitting(tmp_path)
    before = len(cluster.jobs())
    done = subprocess.run(
        project.command(),
        cwd=tmp_path,
        env={**project.environment(), "PYTHONPATH": str(ROOT / "workflow" / "scripts")},
        text=True,
        capture_output=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    held = holding.read(tmp_path)
    assert {one["device"] for one in held} == {"cuda"}
    assert all(one["given"] == one["mine"] for one in held)
    assert {one["mine"] for one in held} == {"0", "1"}
    holding.assert_never_shared(held)
    ids = [job.id for job in cluster.jobs()[before:]]
    assert len(ids) == len(held) == 4
    for one in ids:
        assert "TresPerJob=gres:gpu:1" in ask("scontrol", "show", "job", one)
