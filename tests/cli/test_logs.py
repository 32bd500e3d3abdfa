"""Jobs are found in a run's log: those of groups, of retries, and of a run that still goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from stamp.cli.logs import listing
from stamp.cli.runs import run_log

HEAD = """\
Building DAG of jobs...
[Tue Nov 17 02:48:25 2026]
rule logits:
    input: results/s/pixels/source/p.npy
    output: results/s/logits/source/a.safetensors
    log: results/s/logs/logits/source/a.log
    jobid: 14
    reason: Missing output files: results/s/logits/source/a.safetensors
    wildcards: study=s, view=source, model=a
    resources: tmpdir=<TBD>, mem_mb=4000, runtime=240, gpu=1
Job 14 has been submitted with SLURM jobid 33 (log: {logs}/rule_logits/s_source_a/33.log).
[Tue Nov 17 02:48:39 2026]
Error in rule logits:
    message: SLURM-job '33' failed, SLURM status is: 'OUT_OF_MEMORY'
    jobid: 14
    output: results/s/logits/source/a.safetensors
    log: results/s/logs/logits/source/a.log, {logs}/33.log (check log file(s) for error details)
    external_jobid: 33
Trying to restart job 14.
"""
AGAIN = """\
[Tue Nov 17 02:48:41 2026]
rule logits:
    log: results/s/logs/logits/source/a.log
    jobid: 14
    reason: Missing output files: results/s/logits/source/a.safetensors
    wildcards: study=s, view=source, model=a
Job 14 has been submitted with SLURM jobid 36 (log: {logs}/rule_logits/s_source_a/36.log).
"""
GROUPS = """\
[Tue Nov 17 02:49:39 2026] Group job metrics_s (jobs in lexicogr. order):

    [Tue Nov 17 02:49:39 2026]
    rule metrics:
        log: results/s/logs/metrics/a.log
        jobid: 20
        reason: Missing output files: results/s/metrics/a.parquet
        wildcards: study=s, model=a
[Tue Nov 17 02:49:39 2026] Group job metrics_s (jobs in lexicogr. order):

    [Tue Nov 17 02:49:39 2026]
    rule metrics:
        log: results/s/logs/metrics/b.log
        jobid: 21
        reason: Missing output files: results/s/metrics/b.parquet
        wildcards: study=s, model=b
Job 8a12 has been submitted with SLURM jobid 40 (log: {logs}/group_metrics_s_metrics/40.log).
Job 9a12 has been submitted with SLURM jobid 41 (log: {logs}/group_metrics_s_metrics/41.log).
"""
GROUP_ERROR = """\
[Tue Nov 17 02:49:59 2026]
    message: Error in group metrics_s
    log: {logs}/group_metrics_s_metrics/40.log (check log file(s) for error details)
    jobs:
        rule metrics:
            jobid: 20
            output: results/s/metrics/a.parquet
            log: results/s/logs/metrics/a.log (check log file(s) for error details)
    [Tue Nov 17 02:49:59 2026]
    Error in rule metrics:
        message: None
        jobid: 20
        output: results/s/metrics/a.parquet
        log: results/s/logs/metrics/a.log (check log file(s) for error details)
"""
END = """\
[Tue Nov 17 02:50:16 2026]
Finished jobid: 14 (Rule: logits)
Complete log(s): x.log
"""


def read(folder: Path, *parts: str) -> run_log.Run:
    path = folder / ".snakemake" / "log" / "2026-11-17T024825.snakemake.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(parts).format(logs=folder))
    found = run_log.latest(folder)
    assert found is not None
    return found


def test_a_failed_attempt_and_its_retry_are_one_job(tmp_path: Path) -> None:
    run = read(tmp_path, HEAD, AGAIN, END)
    (job,) = run.jobs.values()
    assert (job.name, job.state, job.attempts) == ("logits s source a", "finished", 2)
    assert [(one.id, one.status) for one in job.submissions] == [
        ("33", "OUT_OF_MEMORY"),
        ("36", "COMPLETED"),
    ]


def test_a_rule_that_only_asks_for_all_results_is_no_job(tmp_path: Path) -> None:
    asking = HEAD.replace("rule logits", "rule everything").replace("jobid: 14", "jobid: 1")
    assert [job.rule for job in read(tmp_path, HEAD, asking).jobs.values()] == ["logits"]


def test_a_job_without_a_retry_left_is_failed(tmp_path: Path) -> None:
    (job,) = read(tmp_path, HEAD).jobs.values()
    assert job.state == "failed"


def test_two_groups_of_one_name_are_told_apart_by_what_their_logs_were_started_for(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "group_metrics_s_metrics"
    folder.mkdir()
    for number, model in (("40", "b"), ("41", "a")):
        (folder / f"{number}.log").write_text(
            f"  Command: x --target-jobs metrics:study=s,model={model} --allowed-rules metrics\n"
        )
    run = read(tmp_path, GROUPS)
    assert {job.wildcards["model"]: job.submissions[0].id for job in run.jobs.values()} == {
        "a": "41",
        "b": "40",
    }


def test_a_group_that_waits_is_found_by_its_name(tmp_path: Path) -> None:
    run = read(tmp_path, GROUPS.replace("metrics_s (", "metrics_t (", 1))
    assert [one.id for one in run.jobs["21"].submissions] == ["40", "41"]


def test_a_failed_group_is_no_further_attempt(tmp_path: Path) -> None:
    run = read(tmp_path, GROUPS, GROUP_ERROR)
    job = run.jobs["20"]
    assert (job.name, job.state, job.attempts) == ("metrics s a", "failed", 1)
    assert [one.status for one in job.submissions] == ["", "failed"]


def test_the_queue_tells_waiting_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    squeue = tmp_path / "squeue"
    squeue.write_text('#!/bin/sh\necho "36 PENDING"\n')
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    run = read(tmp_path, HEAD, AGAIN)
    run_log.ask_slurm(run)
    assert run.jobs["14"].state == "waiting"
    squeue.write_text('#!/bin/sh\necho "36 RUNNING"\n')
    run_log.ask_slurm(run)
    assert run.jobs["14"].state == "running"
    squeue.write_text("#!/bin/sh\nexit 1\n")
    run.jobs["14"].state = "submitted"
    run_log.ask_slurm(run)
    assert run.jobs["14"].state == "submitted"


def test_what_a_run_that_ended_left_open_is_unfinished(tmp_path: Path) -> None:
    run = read(tmp_path, HEAD, AGAIN, "Complete log(s): x.log\n")
    run_log.ask_slurm(run)
    assert run.jobs["14"].state == "unfinished"


def test_a_run_with_nothing_to_do_does_not_hide_the_one_before(tmp_path: Path) -> None:
    first = read(tmp_path, HEAD)
    (first.file.parent / "2027-01-01.snakemake.log").write_text("Nothing to be done.\n")
    found = run_log.latest(tmp_path)
    assert found is not None
    assert found.file == first.file


def test_failed_jobs_come_first_and_show_the_end_of_their_log(tmp_path: Path) -> None:
    written = tmp_path / "results/s/logs/logits/source/a.log"
    written.parent.mkdir(parents=True)
    written.write_text("stamp: model 'a': no file 'w.safetensors'\n")
    done = END.splitlines()[0] + "\nFinished jobid: 20 (Rule: metrics)\n"
    run = read(tmp_path, GROUPS, done, HEAD)
    names = [job.name for job in run_log.ordered(run.jobs.values())]
    assert names == ["logits s source a", "metrics s b", "metrics s a"]
    text = listing(run, tmp_path, "s", failed=True)
    assert "    | stamp: model 'a': no file 'w.safetensors'" in text
    assert "metrics" not in text
