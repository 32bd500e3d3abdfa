"""The same network brought in every form has the same score, in a real run of the workflow."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from networks import ARCH, ARGS, MEAN, STD, network, write_onnx, write_outputs, write_torchscript
from project import PHANTOM, Project
from scipy.special import expit

from stamp.core.artifacts import array_metadata, read_arrays

CLASSES = PHANTOM["classes"]
SIZE = PHANTOM["preprocessing"]["size"]
TEXTS = {"family": "own", "objective": "supervised", "regime": "plain", "trained_on": ["train"]}
NORMAL = {"mean": MEAN, "std": STD}
RUN = ["torchscript", "onnx", "onnx_one", "onnx_seven", "python", "sigmoid"]
PRECOMPUTED = [f"{what}_{kind}" for what in ("logits", "p") for kind in ("parquet", "csv", "npy")]
CODE = f"""
from stamp.models.architectures import build
from stamp.models.weights import read_weights

def chest(weights):
    made = build("{ARCH}", {ARGS!r}, {len(CLASSES)}, 1, {SIZE})
    read_weights(made, weights)
    return made
"""


def add(project: Project, key: str, **load: Any) -> None:
    entry = {**TEXTS, "label": key, "load": load}
    project.edit("zoo/small_phantom.yaml", lambda zoo: zoo.update({key: entry}))


def brought(project: Project) -> None:
    """The network as files of each form in the project, and a model of the zoo for each."""
    from torch import nn

    from stamp.models.weights import write_weights

    folder = project.folder / "own"
    folder.mkdir()
    module = network(len(CLASSES), SIZE)
    write_weights(module, folder / "w.safetensors", {})
    write_torchscript(module, folder / "w.pt", SIZE)
    write_torchscript(nn.Sequential(module, nn.Sigmoid()), folder / "sigmoid.pt", SIZE)
    for name, batch in (("w", None), ("one", 1), ("seven", 7)):
        write_onnx(module, folder / f"{name}.onnx", SIZE, batch)
    (project.folder / "own_code.py").write_text(CODE)
    weights = "own/w.safetensors"
    add(
        project,
        "checkpoint",
        source="checkpoint",
        arch=ARCH,
        arch_args=ARGS,
        file=weights,
        **NORMAL,
    )
    add(project, "torchscript", source="torchscript", file="own/w.pt", **NORMAL)
    add(
        project,
        "sigmoid",
        source="torchscript",
        file="own/sigmoid.pt",
        probabilities=True,
        **NORMAL,
    )
    for key, name in (("onnx", "w"), ("onnx_one", "one"), ("onnx_seven", "seven")):
        add(project, key, source="onnx", file=f"own/{name}.onnx", **NORMAL)
    add(project, "python", source="python", function="own_code:chest", file=weights, **NORMAL)


def give(project: Project) -> None:
    """The outputs of the network as files, as if somebody else had run it."""
    tables = {
        view: pl.read_parquet(project.result(f"small_phantom/views/{view}.parquet"))
        for view in ("source", "external")
    }
    logits = {
        view: read_arrays(project.result(f"small_phantom/logits/{view}/checkpoint.safetensors"))
        for view in tables
    }
    ids = [one for table in tables.values() for one in table["image"]]
    values = np.concatenate([each["logits"] for each in logits.values()]).astype(np.float64)
    order = np.random.default_rng(0).permutation(len(ids))
    for kind in ("parquet", "csv", "npy"):
        for what, found in (("logits", values), ("p", expit(values))):
            path = project.folder / "own" / f"{what}.{kind}"
            path.with_suffix("").mkdir(exist_ok=True)
            path = path.with_suffix("") / f"o.{kind}"
            write_outputs(path, [ids[one] for one in order], found[order], CLASSES)
            file = str(path.relative_to(project.folder))
            more = {"probabilities": True} if what == "p" else {}
            add(project, f"{what}_{kind}", source="logits", file=file, **more)


@pytest.fixture(scope="module")
def done(finished: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The small project with the network in every form, run."""
    project = finished.copy(tmp_path_factory.mktemp("own") / "project")
    brought(project)
    project.edit("config.yaml", lambda config: config.update(allow_code=True))
    project.finish("--omit-from", "collect")
    give(project)
    project.finish()
    yield project


def board(project: Project) -> pl.DataFrame:
    return pl.read_parquet(project.result("small_phantom/leaderboard.parquet"))


@pytest.mark.parametrize("key", [*RUN, *PRECOMPUTED])
def test_every_form_has_the_same_score_and_outcomes(done: Project, key: str) -> None:
    table = board(done)
    one, other = (
        table.row(by_predicate=pl.col("model") == name, named=True) for name in ("checkpoint", key)
    )
    assert one["stamp"] is not None
    numbers = [name for name, kind in table.schema.items() if kind.is_float()]
    assert {"stamp", "low", "high", "source_metric", "temperature", "eta2"} <= set(numbers)
    for name in set(numbers) - {"rank_median", "rank_low", "rank_high", "parameters"}:
        assert other[name] == pytest.approx(one[name], abs=2e-4, nan_ok=True), name
    forms = {"checkpoint", *RUN, *PRECOMPUTED}
    assert set(other["identical_to"].split(", ")) == forms - {key}
    assert f"same outputs as {other['identical_to']}" in other["flags"]


def test_a_run_warns_by_name_of_models_that_are_counted_twice(
    done: Project, tmp_path: Path
) -> None:
    project = done.copy(tmp_path / "project")
    told = project.run("results/small_phantom/statistics/scores.parquet", "--forcerun", "collect")
    assert told.code == 0, told.text
    (line,) = {text for text in told.text.splitlines() if "stamp: warning" in text}
    for named in ("'small_phantom'", "checkpoint", "p_npy", "onnx_seven", "13 times"):
        assert named in line
    alone = pl.read_parquet(project.result("small_phantom/statistics/scores.parquet"))
    assert alone.filter(pl.col("model") == "few")["identical_to"].to_list() == [None]


def test_precomputed_logits_have_the_format_and_provenance_of_others(done: Project) -> None:
    view = pl.read_parquet(done.result("small_phantom/views/external.parquet"))
    folder = done.result("small_phantom/logits/external")
    one, other = (array_metadata(folder / f"{key}.safetensors") for key in ("onnx", "p_npy"))
    assert set(one) - {"torch", "onnxruntime"} <= set(other)
    assert other["ids"] == one["ids"] and other["model"] == "p_npy"
    files = [done.folder / "own" / "p" / f"o.{end}" for end in ("npy", "txt")]
    digests = " ".join(sha256(file.read_bytes()).hexdigest() for file in files)
    assert (other["weights_file"], other["weights_sha256"]) == ("own/p/o.npy", digests)
    assert read_arrays(folder / "p_npy.safetensors")["logits"].shape == (len(view), len(CLASSES))


def test_a_changed_file_or_function_runs_its_own_branch_alone(
    done: Project, tmp_path: Path
) -> None:
    project = done.copy(tmp_path / "project")
    assert project.plan() == {}
    code = project.folder / "own_code.py"
    code.write_text(code.read_text() + "# another word\n")
    ids = project.folder / "own" / "logits" / "o.txt"
    ids.write_text(ids.read_text() + "\n")
    jobs = project.plan()
    changed = {job.split()[-1] for job in jobs if job.startswith("logits ")}
    assert changed == {"python", "logits_npy"}
    branch = [job for job in jobs if job.split()[0] in ("train", "pixels", "pairs", "view")]
    assert branch == []


def test_precomputed_logits_need_no_pixels(finished: Project, tmp_path: Path) -> None:
    """In a study of nothing but precomputed logits, no pixels are made and nothing is trained."""
    project = finished.copy(tmp_path / "project")
    folder = project.folder / "own"
    folder.mkdir()
    ids = [
        one
        for view in ("source", "external")
        for one in pl.read_parquet(project.result(f"small_phantom/views/{view}.parquet"))["image"]
    ]
    values = np.random.default_rng(0).normal(size=(len(ids), len(CLASSES)))
    write_outputs(folder / "o.csv", ids, values, CLASSES)
    add(project, "precomputed", source="logits", file="own/o.csv")
    project.edit("studies/small_phantom.yaml", lambda study: study.update(models=["precomputed"]))
    jobs = project.plan("--forceall", "--until", "logits", "--config", "studies=[small_phantom]")
    assert {job.split()[0] for job in jobs} == {
        "make_dataset",
        "pairs",
        "source_view",
        "view",
        "logits",
    }


def test_code_is_refused_at_planning_and_not_imported(project: Project) -> None:
    trap = project.folder / "ran"
    (project.folder / "sly.py").write_text(f"open({str(trap)!r}, 'w').close()\n")
    add(project, "sly", source="python", function="sly:make", **NORMAL)
    done = project.run("--dry-run")
    assert done.code == 1
    (line,) = [text for text in done.text.splitlines() if text.startswith("stamp: ")]
    for named in ("config/zoo/small_phantom.yaml: sly", "`allow_code: true`", "config.yaml"):
        assert named in line
    assert not trap.exists()


def test_images_that_a_file_lacks_are_counted_and_the_first_is_named(project: Project) -> None:
    view = pl.read_parquet(project.result("small_phantom/views/source.parquet"))
    ids = view["image"].to_list()
    values = np.random.default_rng(0).normal(size=(len(ids), len(CLASSES)))
    write_outputs(project.folder / "o.csv", ids[5:], values[5:], CLASSES)
    add(project, "precomputed", source="logits", file="o.csv")
    done = project.run("results/small_phantom/logits/source/precomputed.safetensors")
    assert done.code != 0
    (line,) = {text for text in done.text.splitlines() if "stamp: " in text}
    for named in ("'precomputed'", "o.csv", f"5 of the {len(ids)}", "'source'", f"'{ids[0]}'"):
        assert named in line
    assert "Traceback" not in done.text
