"""Files that a user replaces are noticed by content, whatever their age, by all their jobs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import polars as pl
import pytest
from networks import ARCH, ARGS, MEAN, STD, network, write_onnx, write_outputs
from project import PHANTOM, Project

from stamp.core.artifacts import array_metadata, read_arrays, read_json

CLASSES, SIZE = PHANTOM["classes"], PHANTOM["preprocessing"]["size"]
TEXTS = {"family": "own", "objective": "supervised", "regime": "plain", "trained_on": ["train"]}
NORMAL = {"mean": MEAN, "std": STD}
PLAIN = {"source": "checkpoint", "arch": ARCH, "arch_args": ARGS, **NORMAL}
FINETUNED = {
    "source": "finetune",
    "arch": ARCH,
    "arch_args": ARGS,
    "initial": {"file": "own/initial.safetensors"},
    **NORMAL,
    "recipe": {"stage1": {"epochs": 1}, "stage2": {"epochs": 1}},
}
PROBED = {
    "source": "probe",
    "backbone": {"timm": ARCH, "args": ARGS, "file": "own/initial.safetensors", **NORMAL},
    "penalty": [1.0],
}
LOADS = {
    "checkpoint": {**PLAIN, "file": "own/model.safetensors"},
    "onnx": {"source": "onnx", "file": "own/net.onnx", **NORMAL},
    "table": {"source": "logits", "file": "own/outputs.csv"},
    "tuned": FINETUNED,
    "probed": PROBED,
}
OLD = 1_000_000_000


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def older(path: Path) -> Path:
    os.utime(path, (OLD, OLD))
    return path


def write_network(path: Path, scale: float = 1.0, note: str = "") -> Path:
    from stamp.models.weights import write_weights

    module = network(len(CLASSES), SIZE)
    module.get_classifier().weight.data.mul_(scale)
    path.parent.mkdir(exist_ok=True)
    write_weights(module, path, {"note": note})
    return path


def write_apart(path: Path, data: str) -> Path:
    """The network as an ONNX file whose weights lie in a file of any name."""
    write_onnx(network(len(CLASSES), SIZE), path, SIZE)
    made = onnx.load(path)
    onnx.save_model(made, path, save_as_external_data=True, location=data, size_threshold=256)
    return path


def write_table(project: Project, path: Path, shift: float) -> Path:
    ids = [
        one
        for view in ("source", "external")
        for one in pl.read_parquet(project.result(f"small_phantom/views/{view}.parquet"))["image"]
    ]
    values = np.random.default_rng(0).normal(size=(len(ids), len(CLASSES))) + shift
    return write_outputs(path, ids, values, CLASSES)


def entry(load: dict[str, Any]) -> dict[str, Any]:
    return {**TEXTS, "label": load["source"], "load": load}


@pytest.fixture(scope="module")
def done(finished: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A study of models that are files of the user's, with a metric that needs flipped images."""
    project = finished.copy(tmp_path_factory.mktemp("replaced") / "project")
    own = project.folder / "own"
    write_network(own / "model.safetensors")
    write_network(own / "initial.safetensors")
    write_apart(own / "net.onnx", "weights.bin")
    write_table(project, own / "outputs.csv", 0.0)
    project.write("zoo/small_phantom.yaml", {key: entry(load) for key, load in LOADS.items()})

    def change(study: dict[str, Any]) -> None:
        study["source"]["val"] = "calibration"
        study |= {"metrics": ["tta_flip"], "analyses": ["baselines"]}

    project.edit("studies/small_phantom.yaml", change)
    project.edit("config.yaml", lambda config: config.update(studies=["small_phantom"]))
    project.finish()
    yield project


@pytest.fixture
def own(done: Project, tmp_path: Path) -> Project:
    return done.copy(tmp_path / "project")


def passes(project: Project) -> dict[str, set[str]]:
    """The jobs of a plan that run a model or read its outputs from a file, by model."""
    rules = ("train", "finetune", "backbone_embeddings", "probe", "logits", "extra_outputs")
    found: dict[str, set[str]] = {}
    for job in project.plan():
        rule, *parts = job.split()
        if rule in rules:
            found.setdefault(parts[-1], set()).add(" ".join([rule, *parts[1:-1]]))
    return found


def test_touched_but_equal_files_mean_no_job(own: Project) -> None:
    """Also where they are too large for Snakemake to compare contents by itself."""
    for number, file in enumerate(sorted((own.folder / "own").iterdir())):
        time = 2_000_000_000 if number % 2 else OLD
        os.utime(file, (time, time))
    assert own.plan("--max-checksum-file-size", "1") == {}


def test_older_files_of_other_content_run_their_own_branches_and_are_in_all_metadata(
    own: Project,
) -> None:
    folder = own.folder / "own"
    other = older(write_network(own.folder / "new" / "w.safetensors", 1.7, "of another size"))
    assert other.stat().st_size != (folder / "model.safetensors").stat().st_size
    shutil.copy2(other, folder / "model.safetensors")  # as cp -p
    shutil.copy2(older(write_table(own, own.folder / "o.csv", 0.5)), folder / "outputs.csv")
    data = folder / "weights.bin"
    data.write_bytes(bytes(np.frombuffer(data.read_bytes(), "<f4") * np.float32(1.01)))
    older(data)
    both = {"logits source", "logits external", "extra_outputs"}
    assert passes(own) == {"checkpoint": both, "onnx": both, "table": both - {"extra_outputs"}}
    before = read_arrays(own.result("small_phantom/logits/source/onnx.safetensors"))["logits"]
    own.finish()
    study = own.result("small_phantom")
    files = {
        "checkpoint": ["model.safetensors"],
        "onnx": ["net.onnx", "weights.bin"],
        "table": ["outputs.csv"],
    }
    for key, names in files.items():
        expected = " ".join(digest(folder / name) for name in names)
        for view in ("source", "external"):
            told = array_metadata(study / f"logits/{view}/{key}.safetensors")
            assert told["weights_sha256"] == expected
        assert read_json(study / f"calibration/{key}.json")["weights_sha256"] == expected
        if key != "table":
            assert read_json(study / f"extra_outputs/{key}.json")["weights_sha256"] == expected
    after = read_arrays(study / "logits/source/onnx.safetensors")["logits"]
    assert not np.allclose(before, after)
    assert own.plan() == {}


def test_the_file_that_training_or_a_backbone_starts_from_counts_too(own: Project) -> None:
    other = older(write_network(own.folder / "new" / "w.safetensors", note="other"))
    shutil.copy2(other, own.folder / "own" / "initial.safetensors")
    found = passes(own)
    assert {"finetune", "logits source", "logits external", "extra_outputs"} == found["tuned"]
    assert {"probe", "logits source", "logits external", "extra_outputs"} == found["probed"]
    assert found.keys() - {"tuned", "probed"} != set()  # the backbone's embeddings, by its own key
    assert not found.keys() & {"checkpoint", "onnx", "table"}


def test_outputs_of_the_old_and_the_new_weights_are_not_put_together(own: Project) -> None:
    """Whoever makes Snakemake take an old file for a new one gets its name instead of a number."""
    scores = own.result("small_phantom/scores/checkpoint.parquet")
    shutil.copy2(scores, own.folder / "kept.parquet")
    write_network(own.folder / "own" / "model.safetensors", 1.7)
    own.finish("--until", "score", "evaluate", "class_matched_score")
    shutil.copy2(own.folder / "kept.parquet", scores)
    os.utime(scores)
    done = own.run("--rerun-triggers", "mtime", "--forcerun", "collect", "--until", "collect")
    assert done.code != 0, done.text
    (line,) = {one for one in done.text.splitlines() if "stamp: " in one}
    for named in ("checkpoint", "weights_sha256", digest(own.folder / "own/model.safetensors")):
        assert named in line
    assert "Traceback" not in done.text


def test_a_wrong_sha256_is_refused_in_the_workflow_and_by_audit_model(own: Project) -> None:
    weights = own.folder / "own" / "model.safetensors"
    pinned = {**LOADS["checkpoint"], "sha256": digest(weights)}
    own.edit("zoo/small_phantom.yaml", lambda zoo: zoo.update(checkpoint=entry(pinned)))
    target = "results/small_phantom/logits/source/checkpoint.safetensors"
    own.finish(target)
    wrong = {**pinned, "sha256": "0" * 64}
    own.edit("zoo/small_phantom.yaml", lambda zoo: zoo.update(checkpoint=entry(wrong)))
    where = ("--load", "config/zoo/small_phantom.yaml", "--model", "checkpoint")
    audit = own.stamp("audit-model", "--study", "small_phantom", *where)
    for done in (own.run(target), audit):
        assert done.code != 0
        lines = {one for one in done.text.splitlines() if "0" * 64 in one and "stamp: " in one}
        (line,) = lines
        for named in ("'checkpoint'", "own/model.safetensors", digest(weights), "0" * 64):
            assert named in line
        assert "Traceback" not in done.text


def test_equal_training_writes_equal_bytes_and_redoes_no_pass(own: Project) -> None:
    """Weights count by the digest in their record, also where they are too large to compare."""
    folder = own.result("small_phantom/trained")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert {
        f"{key}.{end}" for key in ("tuned", "probed") for end in ("safetensors", "json")
    } <= set(before)
    rules = ("finetune", "backbone_embeddings", "probe")
    own.finish("--forcerun", *rules, "--until", *rules)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert own.plan("--max-checksum-file-size", "100000") == {}


def test_copied_results_are_trusted_if_they_are_what_a_run_wrote(
    done: Project, tmp_path: Path
) -> None:
    def copied(name: str) -> Project:
        """A copy without Snakemake's records, all files of another age."""
        ignored = shutil.ignore_patterns(".snakemake")
        shutil.copytree(done.folder, tmp_path / name, ignore=ignored, copy_function=shutil.copy)
        return Project(tmp_path / name)

    whole = copied("whole")
    assert whole.plan() != {}
    said = whole.stamp("trust")
    assert said.code == 0 and "nothing is due" in said.text, said.text
    assert whole.plan() == {}
    assert whole.stamp("trust").text.startswith("Snakemake has its records")

    changed = copied("changed")
    damaged = changed.result("small_phantom/logits/source/onnx.safetensors")
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\1")
    write_network(changed.folder / "own" / "model.safetensors", 1.7)
    said = changed.stamp("trust")
    assert said.code == 1
    (refused,) = [line for line in said.text.splitlines() if line.startswith("not trusted")]
    assert "logits/source/onnx.safetensors" in refused
    assert "logits/source/checkpoint.safetensors" in said.text
    both = {"logits source", "logits external", "extra_outputs"}
    assert passes(changed) == {"onnx": {"logits source"}, "checkpoint": both}

    changed.result(".provenance.json").unlink()
    said = changed.stamp("trust")
    assert said.code != 0 and "results/.provenance.json" in said.text
