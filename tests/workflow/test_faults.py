"""Faults in the middle of a run: every file that is being written may be the last thing a job does.

One small study has every kind of stage. Undisturbed it runs once; then it is killed in the middle
of a write in each stage, its connections are cut, and its disk fills up. What is there in the end
is the same, byte for byte.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import fault_study
import pytest
from fault_study import STUDY, TARGETS, Fault, FaultyProject, Hosts
from project import ROOT, Run
from safetensors.numpy import load_file

FIRST_ENDED = [Fault("download.py", "home.tar.gz", 0), Fault("make_dataset.py", "few_uci", 0)]
DOWNLOADS = [f"results/datasets/{name}/downloads/{name}.tar.gz.json" for name in ("home", "away")]
RESUMED = ".linear.safetensors.unfinished.json"


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    with fault_study.hosts(tmp_path_factory.mktemp("hosts") / "served") as running:
        yield running


@pytest.fixture(scope="module")
def undisturbed(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> FaultyProject:
    """The study, finished without a fault; read it, or copy it before changing anything."""
    folder = tmp_path_factory.mktemp("undisturbed") / "project"
    project = FaultyProject(fault_study.create(folder, hosts).folder)
    project.finish(*DOWNLOADS)
    project.finish(*TARGETS)
    return project


def faults_of(done: FaultyProject) -> list[Fault]:
    """A kill in the middle of a file of every stage; sizes are those of the finished files."""

    def half(script: str, output: str, file: str = "", **when: object) -> Fault:
        size = done.result(file or output).stat().st_size // 2
        return Fault(f"{script}.py", output, size, **when)  # type: ignore[arg-type]

    study = f"{STUDY}/"
    weights, extra = f"{study}trained/tuned.safetensors", f"{study}extra_outputs/"
    stream = done.result(f"{study}predictions/stream/linear.safetensors")
    rows = load_file(stream)["predictions"].nbytes  # beside them it holds a sample's logits
    return [
        half("find_dataset", "datasets/home/index.parquet"),
        half("find_images", "datasets/home/images.json"),
        half("pairs", f"{study}pairs.parquet"),
        half("source_view", f"{study}views/source.parquet"),
        half("view", f"{study}views/stream.parquet"),
        half("pixels", f"{study}pixels/source/32-gray-bilinear.npy"),
        half("train", f"{study}trained/linear.safetensors"),
        # the second epoch's checkpoint, then the weights of the best epoch
        half("finetune", weights, after="tuned.pt"),
        half("finetune", weights, after="tuned.pt", times=2),
        half("backbone_embeddings", f"{study}backbone_embeddings/train/", _backbone(done)),
        half("probe", f"{study}trained/probe.safetensors"),
        half("logits", f"{study}logits/source/linear.safetensors"),
        # the third part of a streamed target, then the file of all parts
        Fault("predictions.py", "predictions/stream/linear", 2 * rows // 5, RESUMED, 2),
        Fault("predictions.py", "predictions/stream/linear", stream.stat().st_size - 8, RESUMED, 3),
        half("calibrate", f"{study}calibration/linear.json"),
        half("precomputed_logits", f"{study}logits/away/given.safetensors"),
        half("precomputed_predictions", f"{study}predictions/stream/given.safetensors"),
        half("score", f"{study}scores/tuned.parquet"),
        half("class_matched_score", f"{study}class_matched_scores/away/tuned.parquet"),
        half("score", f"{study}pair_examples/tuned.json"),
        half("thumbnails", f"{study}thumbnails.parquet"),
        half("model_profile", f"{study}profiles/robustness/tuned.parquet"),
        # the first kind of extra output, then a kind after it
        half("extra_outputs", f"{extra}linear.json", f"{extra}embeddings/linear.safetensors"),
        half(
            "extra_outputs",
            f"{extra}tuned.json",
            f"{extra}flip/tuned.safetensors",
            after="embeddings/tuned.json",
        ),
        half(
            "stress_tests",
            f"{study}stress_tests/linear.json",
            f"{study}stress_tests/noise/linear.safetensors",
        ),
        half("target_embeddings", f"{study}target_embeddings/probe.json"),
        half("metrics", f"{study}metrics/linear.parquet"),
        half("projection_norm", f"{study}projection_norm/linear.parquet"),
        half("agreement_on_the_line", f"{study}statistics/agreement_on_the_line.parquet"),
        half("evaluate", f"{study}evaluations/away/tuned.parquet"),
        half("collect", f"{study}statistics/outcomes.parquet"),
        half("correlate", f"{study}statistics/correlations.csv"),
        half("main_table", f"{study}statistics/main.md"),
        half("leaderboard", f"{study}leaderboard.parquet"),
        half("figure", f"{study}figures/forest.png"),
        half("training_figure", f"{study}figures/training.png"),
        half("pair_distances", f"{study}figures/pair_distances.png"),
        half("analysis", f"{study}analyses/baselines.csv"),
        half("analysis_figure", f"{study}figures/baselines.png"),
        half("chart_library", ".chart_library.js"),
        half("page", f"{study}page.html"),
        half("index_page", "index.html"),
        half("audit_claims", "audit/claims.csv"),
    ]


# Scripts of which no job is ended here.
ELSEWHERE = {
    "staged": "runs another script of the list",
    "timings": "what jobs took, which no two runs have equal",
    "audit_study": "sets the paper's studies beside it, which are not run here",
    "stream": "tests/inference/test_stream_models.py ends it after any part",
}


def test_every_stage_is_ended_in_a_write(undisturbed: FaultyProject) -> None:
    """Who adds a script adds a line to the list."""
    ended = {fault.script.removesuffix(".py") for fault in [*FIRST_ENDED, *faults_of(undisturbed)]}
    scripts = {path.stem for path in (ROOT / "workflow" / "scripts").glob("*.py")}
    assert ended | set(ELSEWHERE) == scripts


def _backbone(project: FaultyProject) -> str:
    folder = project.result(f"{STUDY}/backbone_embeddings/train")
    return str(next(folder.glob("*.safetensors")).relative_to(project.folder / "results"))


def killed(run: Run) -> Counter[str]:
    """The scripts of the jobs that the kernel ended, from what Snakemake said of them."""
    return Counter(re.findall(r"tmp\w+\.(\w+)\.py' died with <Signals\.SIGXFSZ", run.text))


def assert_same(project: FaultyProject, undisturbed: FaultyProject) -> None:
    """The same files with the same bytes, no part of another, and nothing left to do."""
    found, wanted = fault_study.content(project), fault_study.content(undisturbed)
    assert sorted(found) == sorted(wanted)
    assert [name for name in wanted if found[name] != wanted[name]] == []
    assert not list(project.folder.rglob("*.part"))
    assert not project.plan(*TARGETS)


def test_a_run_that_is_killed_in_every_write_ends_with_the_same_bytes(
    undisturbed: FaultyProject, hosts: Hosts, tmp_path: Path
) -> None:
    """Downloads fail and are called again, as by a user; later jobs are tried again at once."""
    project = FaultyProject(fault_study.create(tmp_path / "project", hosts).folder)
    archive = (hosts.data.folder / "home.tar.gz").stat().st_size
    index = undisturbed.result("datasets/few_uci/index.parquet").stat().st_size
    first = [
        replace(fault, size=size // 2)
        for fault, size in zip(FIRST_ENDED, (archive, index), strict=True)
    ]
    fault_study.place(first, project.folder / "faults")
    run = project.run(*DOWNLOADS, TARGETS[1])
    assert run.code == 1
    assert killed(run) == {"download": 1, "make_dataset": 1}
    assert "2 jobs failed:" in run.text
    arrived = project.folder / "results" / "data" / "home" / ".downloads" / "home.tar.gz.part"
    assert arrived.stat().st_size == archive // 2

    asked = len(hosts.data.requests)
    hosts.data.cut(after=archive // 8, times=2)
    project.finish(*DOWNLOADS, TARGETS[1])
    answers = [one for one in hosts.data.requests[asked:] if "home" in one.path]
    assert answers[0].range == f"bytes={archive // 2}-"
    assert sum(one.sent for one in answers) == archive - archive // 2

    shutil.rmtree(project.folder / "faults")
    faults = faults_of(undisturbed)
    fault_study.place(faults, project.folder / "faults")
    hosts.weights.cut(after=10_000, times=2)
    run = project.finish(*TARGETS, "--retries", "3")
    assert killed(run) == Counter(fault.script.removesuffix(".py") for fault in faults)
    shutil.rmtree(project.folder / "faults")
    assert_same(project, undisturbed)
    assert_no_secret(project)


def assert_no_secret(project: FaultyProject) -> None:
    """No file of the folder, of Snakemake's or of ours, has the user's key."""
    secret = fault_study.SECRET.encode()
    files = [path for path in project.folder.rglob("*") if path.is_file()]
    assert any(".snakemake" in path.parts for path in files)
    assert [path for path in files if secret in path.read_bytes()] == []


# By run: none of its jobs waits for what another one makes.
STAGES = [
    {
        "leaderboard": ["leaderboard.csv", "leaderboard.parquet"],
        "figure": ["figures/forest.png", "figures/forest.pdf", "figures/forest.csv"],
        "analysis": [f"analyses/baselines{end}" for end in (".csv", "_models.csv", ".txt")],
        "main_table": ["statistics/main.csv", "statistics/main.md"],
    },
    {
        "make_dataset": ["datasets/few_uci/index.parquet"],
        "find_dataset": ["datasets/away/index.parquet"],
        "train": ["trained/linear.safetensors", "trained/linear.json"],
        "logits": ["logits/source/probe.safetensors"],
        "score": [
            *(f"scores/tuned.{end}" for end in ("parquet", "n_pairs.parquet")),
            *("scores/tuned.draws.safetensors", "pair_examples/tuned.json"),
        ],
        "extra_outputs": ["extra_outputs/tuned.json", "extra_outputs/flip/tuned.json"],
        "stress_tests": ["stress_tests/tuned.json", "stress_tests/blur/tuned.json"],
        "evaluate": ["evaluations/source/tuned.parquet"],
    },
    {
        "finetune": ["trained/tuned.safetensors", "trained/tuned.json"],
        "backbone_embeddings": ["backbone_embeddings/train/"],
        "predictions": ["predictions/stream/linear.safetensors"],
        "calibrate": ["calibration/linear.json"],
    },
    {
        "pairs": ["pairs.parquet"],
        "download": ["datasets/away/downloads/away.tar.gz.json"],
    },
]
CACHE = [f"pixels/train/32-gray-bilinear{end}" for end in (".npy", ".json")]


def test_a_full_disk_is_one_line_in_every_stage_and_the_run_goes_on_when_there_is_room(
    undisturbed: FaultyProject, tmp_path: Path
) -> None:
    """Only Snakemake's own folder has room."""
    with on_a_small_disk(undisturbed, tmp_path) as project:
        for stages in STAGES:
            fails_for_want_of_room(project, stages)
        is_refused_before_the_first_image(project)
        project.finish(*TARGETS)
        assert_same(project, undisturbed)


def test_a_disk_that_fills_up_while_images_are_decoded_is_one_line_and_leaves_nothing(
    undisturbed: FaultyProject, tmp_path: Path
) -> None:
    """There is room when the run starts; then another program leaves room for half of the cache."""
    cache = undisturbed.result(f"{STUDY}/{CACHE[0]}").stat().st_size
    with on_a_small_disk(undisturbed, tmp_path) as project:
        targets = taken_away(project, CACHE)
        filler = project.result("filler")
        fault = Fault("pixels.py", CACHE[0], cache // 2, filler=str(filler))
        fault_study.place([fault], project.folder / "faults")
        run = project.run(*targets)
        assert run.code == 1 and "Error in rule pixels:" in run.text
        assert filler.is_file() and "Traceback" not in run.text, run.text
        planned, failed = dict.fromkeys(fault_study.said(run))
        assert "will be written" in planned
        assert CACHE[0] in failed and "no space left on the disk" in failed
        assert not any((project.folder / name).exists() for name in targets)
        assert not list(project.folder.rglob("*.part"))
        filler.unlink()
        project.finish(*targets)
        project.finish(*TARGETS)
        assert_same(project, undisturbed)


@contextmanager
def on_a_small_disk(undisturbed: FaultyProject, folder: Path) -> Iterator[FaultyProject]:
    """A copy with a file system of its own for the results: they fit, and 1 MiB more."""
    if reason := no_mounting(folder):
        assert os.environ.get("CI") != "true", reason
        pytest.skip(reason)
    project = FaultyProject(undisturbed.copy(folder / "project").folder)
    results = project.folder / "results"
    kept = results.rename(project.folder / "kept")
    results.mkdir()
    size = sum(path.stat().st_blocks * 512 + 4096 for path in kept.rglob("*"))
    with fault_study.small_disk(results, size + (1 << 20)):
        shutil.copytree(kept, results, dirs_exist_ok=True)
        shutil.rmtree(kept)
        yield project


def no_mounting(folder: Path) -> str:
    """Why no file system can be mounted here, or nothing."""
    (folder / "mounted").mkdir()
    try:
        with fault_study.small_disk(folder / "mounted", 1 << 20):
            return ""
    except (OSError, fault_study.subprocess.CalledProcessError) as error:
        return f"a file system can't be mounted here: {error}"


def taken_away(project: FaultyProject, names: list[str]) -> list[str]:
    """The files of some results, which are there no more."""
    found = []
    for name in names:
        place = project.result(name if name.startswith("datasets/") else f"{STUDY}/{name}")
        for path in place.iterdir() if place.is_dir() else [place]:
            path.unlink()
            found.append(str(path.relative_to(project.folder)))
    return found


def is_refused_before_the_first_image(project: FaultyProject) -> None:
    """Take away a pixel cache, fill the disk: one line says that it does not fit, no job runs."""
    targets = taken_away(project, CACHE)
    filler = fault_study.fill(project.folder / "results")
    run = project.run(*targets)
    (line,) = set(fault_study.said(run))
    assert run.code == 1 and "pixel caches" in line and "do not fit" in line
    assert "Traceback" not in run.text and "rule pixels:" not in run.text
    filler.unlink()
    project.finish(*targets)


def fails_for_want_of_room(project: FaultyProject, stages: dict[str, list[str]]) -> None:
    """Take away the outputs of stages, fill the disk, and run them; then make room and run again"""
    targets = taken_away(project, [name for outputs in stages.values() for name in outputs])
    # what Snakemake removes before a job would make room for it
    removed = [f"{STUDY}/benchmarks", f"{STUDY}/logs"]
    for name in [*removed, *(["datasets/few_uci/images"] if "make_dataset" in stages else [])]:
        shutil.rmtree(project.result(name), ignore_errors=True)
    for log in project.result("datasets").rglob("*.log"):
        log.unlink()
    targets = [name for name in targets if not {"flip", "blur"} & set(Path(name).parts)]
    filler = fault_study.fill(project.folder / "results")
    run = project.run(*targets)
    assert run.code == 1
    assert "Traceback" not in run.text, run.text
    lines = set(fault_study.said(run))
    assert len(lines) == len(stages), "\n".join(sorted(lines))
    for stage, (first, *_) in stages.items():
        assert f"Error in rule {stage}:" in run.text
        named = Path(first).name.partition(".")[0]  # or a file of the stage that it keeps beside
        assert any(named in line and "no space left on the disk" in line for line in lines), stage
    filler.unlink()
    project.finish(*targets)
