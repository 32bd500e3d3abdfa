"""A dry run's text read back as jobs, and the order and counts that are shown of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from project import ROOT

from stamp.cli import status
from stamp.cli.runs.dry_run import STAGES, DueJob, by_stage, counted, dry_run, read
from stamp.core.errors import UserError

TEXT = """Job stats:
job       count
------  -------
logits        1

[Tue Nov 17 02:56:23 2026]
rule score:
    input: a.parquet, b.json
    output: results/s/scores/m.parquet, results/s/scores/m.n_pairs.parquet
    log: results/s/logs/score/m.log
    jobid: 7
    reason: Missing output files: results/s/scores/m.parquet; Input files updated by another job: c
    wildcards: study=s, model=m
    resources: tmpdir=/tmp
[Tue Nov 17 02:56:23 2026]
rule logits:
    output: results/s/logits/north/m.safetensors
    log: results/s/logs/logits/north/m.log
    jobid: 5
    reason: Params have changed since last execution
    wildcards: study=s, view=north, model=m
[Tue Nov 17 02:56:23 2026]
localrule all:
    input: results/s/leaderboard.csv
    jobid: 0
    reason: Input files updated by another job: results/s/leaderboard.csv
Job stats:
job       count
"""


def test_jobs_are_read_with_wildcards_files_and_reason() -> None:
    score, logits = read(TEXT)
    assert (score.rule, score.wildcards) == ("score", {"study": "s", "model": "m"})
    assert score.outputs == ("results/s/scores/m.parquet", "results/s/scores/m.n_pairs.parquet")
    assert score.logs == ("results/s/logs/score/m.log",)
    assert score.reason.startswith("Missing output files: ")
    assert (logits.name, score.name) == ("logits north", "score")
    assert counted([score, logits, logits, DueJob("other")]) == "logits 2, score 1, other 1"


def test_the_order_is_that_of_the_stages_whatever_was_printed_first() -> None:
    views = [DueJob("logits", {"view": view}) for view in ("north", "source", "coast")]
    jobs = [DueJob("score"), DueJob("unknown"), *views, DueJob("pixels")]
    named = ["pixels", "logits source", "logits coast", "logits north", "score", "unknown"]
    for order in (jobs, jobs[::-1]):
        assert [job.name for job in by_stage(order)] == named


def test_outside_a_project_it_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"no Snakefile in .*: run this in the project's folder"):
        dry_run()


@pytest.mark.parametrize(
    ("reason", "there", "log", "state"),
    [
        ("Missing output files: o", False, None, "missing"),
        ("Missing output files: o", False, "stamp: model 'm': it broke", "failed"),
        ("Missing output files: o", False, "Traceback ...\n  in score\nit broke", "failed"),
        ("Params have changed since last execution", True, "stamp: an old line", "stale"),
        ("Updated input files: w.pt", True, None, "stale"),
        ("Input files updated by another job: x", True, None, "stale"),
    ],
)
def test_the_state_is_by_what_is_on_disk_and_what_snakemake_says(
    tmp_path: Path, reason: str, there: bool, log: str | None, state: str
) -> None:
    output, said = tmp_path / "o", tmp_path / "l.log"
    if there:
        output.touch()
    if log is not None:
        said.write_text(log + "\n")
    row = status.state_of("m", [DueJob("score", {}, (str(output),), (str(said),), reason)])
    assert row.state == state
    if state == "failed":
        assert row.why.removesuffix(f" (all of it in {said})") == "score: it broke"


def test_a_job_that_was_killed_has_failed_although_its_log_is_silent(tmp_path: Path) -> None:
    """The last run's own log knows it; one that another run finished since is not due."""
    logs = tmp_path / ".snakemake" / "log"
    logs.mkdir(parents=True)
    (logs / "2026-11-17T020000.000000.snakemake.log").write_text(
        "[Tue Nov 17 02:00:00 2026]\nrule score:\n    log: l.log\n    jobid: 7\n"
        "    reason: Missing output files: o\n    wildcards: study=s, model=m\n"
        "[Tue Nov 17 02:00:01 2026]\nError in rule score:\n    jobid: 7\n    output: o\n"
    )
    failed = status.failures(tmp_path)
    own = {"study": "s", "model": "m"}
    job = DueJob("score", own, (str(tmp_path / "o"),), (str(tmp_path / "l.log"),), "Missing")
    assert status.state_of("m", [job], failed).state == "failed"
    assert "ended without a word" in status.state_of("m", [job], failed).why
    other = DueJob("score", {**own, "model": "n"}, job.outputs, job.logs, "Missing")
    assert status.state_of("n", [other], failed).state == "missing"
    assert status.state_of("m", [job]).state == "missing"
    assert status.failures(tmp_path / "elsewhere") == frozenset()


def test_a_model_without_jobs_is_done() -> None:
    assert status.state_of("m", []) == status.ModelState("m", "done", "")


def test_every_stage_is_a_rule_of_the_workflow() -> None:
    text = "\n".join(file.read_text() for file in (ROOT / "rules").glob("*.smk"))
    assert set(STAGES) <= set(re.findall(r"^(?:rule|checkpoint) (\w+):", text, re.MULTILINE))


def test_a_job_that_went_well_once_and_lost_its_file_is_missing_and_not_failed(
    tmp_path: Path,
) -> None:
    log = tmp_path / "m.log"
    log.write_text("done; 0.1 s, 0.1 s of CPU, 90 MB; polars 1\n")
    job = DueJob("score", {"model": "m"}, (str(tmp_path / "m.parquet"),), (str(log),))
    assert status.last_error(job) is None
    log.write_text("Traceback (most recent call last):\nKeyError: 'x'\n")
    assert "KeyError" in (status.last_error(job) or "")
