"""Runs that are killed, repeated or extended end with the same numbers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from project import PHANTOM, Project, model

from stamp.core.artifacts import read_arrays

TABLES = [
    "pairs.parquet",
    "statistics/scores.parquet",
    "statistics/outcomes.parquet",
    "leaderboard.parquet",
]


def assert_same_results(first: Project, second: Project, study: str = "small_phantom") -> None:
    """Identical pairs, logits, scores and statistics, to the last bit."""
    for name in TABLES:
        tables = [pl.read_parquet(each.result(f"{study}/{name}")) for each in (first, second)]
        assert_frame_equal(*tables, check_exact=True)
    for name in ("correlations", "ranks", "outranks"):
        texts = [
            each.result(f"{study}/statistics/{name}.csv").read_text() for each in (first, second)
        ]
        assert texts[0] == texts[1], name
    for path in sorted(first.result(f"{study}/logits").rglob("*.safetensors")):
        twin = second.folder / path.relative_to(first.folder)
        assert (read_arrays(path)["logits"] == read_arrays(twin)["logits"]).all(), path


def test_two_runs_with_one_seed_are_identical(finished: Project, tmp_path: Path) -> None:
    again = Project.create(tmp_path / "again", {"small_phantom": PHANTOM})
    again.finish()
    assert_same_results(finished, again)


def test_another_seed_draws_other_pairs(finished: Project, tmp_path: Path) -> None:
    other = Project.create(tmp_path / "other", {"small_phantom": PHANTOM})
    other.edit("config.yaml", lambda config: config.update(seed=4))
    other.finish("results/small_phantom/pairs.parquet")
    pairs = [pl.read_parquet(p.result("small_phantom/pairs.parquet")) for p in (finished, other)]
    assert pairs[0]["a"].to_list() != pairs[1]["a"].to_list()


def test_a_run_killed_in_the_middle_of_an_extraction_resumes(
    finished: Project, tmp_path: Path
) -> None:
    """SIGKILL to the whole run while a logits file is half written, then the same command again."""
    slow = model("resnet18", "Slow", backbone="random", preprocessing={"size": 96}, fraction=0.1)
    project, whole = (finished.copy(tmp_path / name) for name in ("killed", "whole"))
    for each in (project, whole):
        each.edit("zoo/small_phantom.yaml", lambda zoo: zoo.update(slow=slow))
    whole.finish()

    # the jobs are processes of this one's group, so that all are killed at once
    running = subprocess.Popen(
        [sys.executable, *project.command()[1:]],
        cwd=project.folder,
        env=project.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    folder = project.result("small_phantom/logits")
    half: list[Path] = []
    deadline = time.monotonic() + 300
    while not half and time.monotonic() < deadline and running.poll() is None:
        half = list(folder.rglob(".slow.safetensors.*.part"))
        time.sleep(0.01)
    assert half, "the extraction was never seen half way"
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert not list(folder.rglob("slow.safetensors"))

    project.finish("--unlock")
    project.finish()
    assert not any("trained/slow" in line for line in [project.run("--dry-run").text])
    assert_same_results(project, whole)


WAITING = """
import time
from pathlib import Path
from stamp.core.errors import run

def main(smk):
    Path("started").touch()
    while not Path("go").exists():
        time.sleep(0.05)
    for each in smk.output:
        Path(each).touch()

if __name__ == "__main__":
    run(main, snakemake)
"""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_says_so_in_its_last_line(
    project: Project, sent: signal.Signals
) -> None:
    """Ctrl-C reaches all processes of a terminal; who sends SIGTERM waits for the running jobs."""
    (project.folder / "workflow" / "scripts" / "train.py").write_text(WAITING)
    running = subprocess.Popen(
        [sys.executable, *project.command("results/small_phantom/trained/linear.json")[1:]],
        cwd=project.folder,
        env=project.environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    while running.poll() is None and not (project.folder / "started").exists():
        time.sleep(0.02)
    if sent == signal.SIGINT:
        os.killpg(running.pid, sent)
    else:
        os.kill(running.pid, sent)
        (project.folder / "go").touch()
    said = running.communicate(timeout=300)[0].splitlines()
    assert running.returncode != 0
    assert said[-1].startswith("stamp: interrupted")
    assert not any("A job failed" in line or "Traceback" in line for line in said), said


def test_a_run_that_is_stopped_while_it_plans_says_so_without_a_traceback(project: Project) -> None:
    snakefile = project.folder / "Snakefile"
    waits = "import time\nfrom pathlib import Path\n\nPath('planning').touch()\ntime.sleep(300)\n"
    snakefile.write_text(f"{snakefile.read_text()}\n\n{waits}")
    running = subprocess.Popen(
        [sys.executable, *project.command("-n")[1:]],
        cwd=project.folder,
        env=project.environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    while running.poll() is None and not (project.folder / "planning").exists():
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=300)[0].splitlines()
    assert running.returncode != 0
    assert said[-1].startswith("stamp: interrupted")
    assert not any("Traceback" in line for line in said), said


def test_an_added_model_changes_no_other_models_files(project: Project) -> None:
    """The branch runs for real; what was there keeps its bytes and its time."""
    kept = {
        path: path.stat().st_mtime_ns
        for part in ("logits", "scores", "evaluations", "trained")
        for path in project.result(f"small_phantom/{part}").rglob("*")
        if path.is_file()
    }
    project.edit("zoo/small_phantom.yaml", lambda zoo: zoo.update(new=model("linear", "New")))
    project.finish()
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    board = pl.read_csv(project.result("small_phantom/leaderboard.csv"))
    assert set(board["model"]) == {"few", "linear", "mixer", "new", "noisy"}
    project.edit("zoo/small_phantom.yaml", lambda zoo: zoo.pop("new"))
    project.finish()
    board = pl.read_csv(project.result("small_phantom/leaderboard.csv"))
    assert set(board["model"]) == {"few", "linear", "mixer", "noisy"}


def test_fewer_pairs_are_a_prefix_and_a_study_without_targets_ends_in_a_ranked_leaderboard(
    project: Project,
) -> None:
    """One study with a lower number of pairs, the other without targets, in one run."""
    before = pl.read_parquet(project.result("small_phantom/scores/linear.parquet"))
    project.edit("studies/small_phantom.yaml", lambda study: study["pairs"].update(n_pairs=30))
    project.edit("studies/small_digits.yaml", lambda study: study.pop("targets"))
    assert not any("figure small_digits targets" in job for job in project.plan())
    project.finish()
    after = pl.read_parquet(project.result("small_phantom/scores/linear.parquet"))
    assert before["sampled_within"][0] != after["sampled_within"][0]
    assert before["within"][0] == after["within"][0]  # exact: over all 80 drawn pairs
    assert after["n_semantic"].to_list()[0] == 80
    board = pl.read_csv(project.result("small_digits/leaderboard.csv"))
    assert board["model"].len() == 2
    assert not any(name.startswith("target:") for name in board.columns)
    assert "no targets" in project.result("small_digits/statistics/main.md").read_text()


def test_gpu_slots_do_not_serialise_a_run_on_the_cpu(project: Project) -> None:
    """With --resources gpu=1 and no GPU, two extractions of one thread may run side by side."""
    text = project.finish("--dry-run", "--forcerun", "logits", "--resources", "gpu=1").text
    assert "gpu=0" in text
    assert "gpu=1," not in text


def test_a_device_that_is_not_there_is_one_line(project: Project) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    project.edit("config.yaml", lambda config: config.update(device="cuda"))
    project.result("small_phantom/logits/source/linear.safetensors").unlink()
    done = project.run("results/small_phantom/logits/source/linear.safetensors")
    assert done.code != 0
    assert "CUDA device" in done.text
    assert "Traceback" not in done.text
