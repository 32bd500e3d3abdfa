"""Images that are decoded while a model runs, and models that share a streamed target's images."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from networks import ARCH, ARGS, MEAN, STD, network
from project import DIGITS, Project, jobs

STUDY, SIZE, LARGE = "small_digits", DIGITS["preprocessing"]["size"], 36
TEXTS = {"family": "own", "objective": "supervised", "regime": "plain", "trained_on": ["train"]}


def entry(name: str, **preprocessing: int) -> dict:
    load = {
        "source": "checkpoint",
        "arch": ARCH,
        "arch_args": ARGS,
        "file": f"own/{name}.safetensors",
    }
    load |= {"mean": MEAN, "std": STD, "preprocessing": preprocessing}
    return {**TEXTS, "label": name, "load": load}


def outputs(project: Project, *models: str) -> list[str]:
    """The files of models' outputs: logits on the cached views, predictions on the streamed one."""
    folder = f"results/{STUDY}"
    return [
        file
        for name in models
        for file in (
            f"{folder}/logits/source/{name}.safetensors",
            f"{folder}/logits/uci/{name}.safetensors",
            f"{folder}/predictions/far/{name}.safetensors",
        )
    ]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """Two networks at the study's size, and one whose images are too large to be kept."""
    from stamp.models.weights import write_weights

    far = {"dataset": "few_uci", "outcomes": "whole", "streamed": True}
    targets = {**DIGITS["targets"], "far": far}
    pairs = {**DIGITS["pairs"], "max_pairs": 40}
    study = {**DIGITS, "targets": targets, "pairs": pairs, "cached_size": SIZE, "id": None}
    study = {key: value for key, value in study.items() if value is not None}
    project = Project.create(tmp_path_factory.mktemp("decoding") / "project", {STUDY: study})
    (project.folder / "own").mkdir()
    for number, (name, size) in enumerate({"a": SIZE, "b": SIZE, "c": SIZE, "big": LARGE}.items()):
        module = network(10, size)
        module.get_classifier().bias.data += number
        write_weights(module, project.folder / "own" / f"{name}.safetensors", {})
    zoo = {"a": entry("a"), "b": entry("b"), "big": entry("big", size=LARGE)}
    project.write(f"zoo/{STUDY}.yaml", zoo)
    project.finish(*outputs(project, "a", "b", "big"))
    yield project


def copied(project: Project, tmp_path: Path) -> Project:
    return project.copy(tmp_path / "copy")


def test_images_beyond_the_cached_size_leave_no_pixels_and_the_same_logits(
    project: Project, tmp_path: Path
) -> None:
    caches = {file.name for file in project.result(f"{STUDY}/pixels").rglob("*.npy")}
    assert caches == {f"{SIZE}-gray-bilinear.npy"}
    other = copied(project, tmp_path)
    other.edit(f"studies/{STUDY}.yaml", lambda study: study.update(cached_size=LARGE))
    wanted = outputs(other, "a", "b", "big")
    before = {file: (other.folder / file).read_bytes() for file in wanted}
    planned = other.plan(*wanted)
    views = ("source", "uci")
    assert planned == jobs(
        [f"pixels {STUDY} {view} {LARGE}-gray-bilinear" for view in views],
        [f"logits {STUDY} {view} big" for view in views],
    )
    other.finish(*wanted)
    assert {file: (other.folder / file).read_bytes() for file in wanted} == before


def test_a_model_that_shares_a_stream_runs_alone_when_it_is_added(
    project: Project, tmp_path: Path
) -> None:
    other = copied(project, tmp_path)
    assert other.plan(*outputs(other, "a", "b", "big")) == jobs()
    other.edit(f"zoo/{STUDY}.yaml", lambda zoo: zoo.update(c=entry("c")))
    wanted = outputs(other, "a", "b", "big", "c")
    assert other.plan(*wanted) == jobs(
        f"predictions {STUDY} far c",
        [f"logits {STUDY} {view} c" for view in ("source", "uci")],
    )
    files = [other.folder / file for file in outputs(other, "a", "b")]
    before = [file.stat().st_mtime_ns for file in files]
    other.finish(*wanted)
    assert [file.stat().st_mtime_ns for file in files] == before
    assert other.plan(*wanted) == jobs()


def test_how_many_run_together_and_the_batch_are_no_reason_to_run_again(
    project: Project, tmp_path: Path
) -> None:
    other, wanted = copied(project, tmp_path), outputs(project, "a", "b", "big")
    change = {"batch": 7, "streamed_models": 1}
    other.edit("config.yaml", lambda config: config.update(inference=change))
    assert other.plan(*wanted) == jobs()
    change["tf32"] = True
    other.edit("config.yaml", lambda config: config.update(inference=change))
    found = set(other.plan(*wanted))
    assert {f"logits {STUDY} uci a", f"predictions {STUDY} far b"} <= found
    assert not any(job.startswith("pixels") for job in found)


def test_what_decodes_images_counts_where_they_are_decoded(
    project: Project, tmp_path: Path
) -> None:
    other = copied(project, tmp_path)
    other.change_code("images/decoded_images.py")
    found = set(other.plan(*outputs(other, "a", "b", "big")))
    assert {f"logits {STUDY} {view} big" for view in ("source", "uci")} <= found
    assert not any(job.startswith(("logits", "pixels")) and job.endswith(" a") for job in found)
