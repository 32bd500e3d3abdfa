"""Outputs say which files they are of, and those of different files are never put together."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from snakemake.iocontainers import InputFiles

from stamp.core.artifacts import write_arrays, write_json, write_table
from stamp.core.errors import UserError
from stamp.inference.provenance import ModelFiles, same_weights


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def job(**files: object) -> InputFiles:
    return InputFiles(fromdict=files)


def test_a_file_replaced_after_planning_is_refused_by_name(tmp_path: Path) -> None:
    weights, data = tmp_path / "m.onnx", tmp_path / "m.bin"
    for file in (weights, data):
        file.write_bytes(file.name.encode())
    inputs = job(weights=str(weights), further=[str(data)], trained=[])
    files = ModelFiles.of_job(inputs, [digest(weights), digest(data)])
    files.check()
    assert files.weights == weights
    assert files.card["weights_sha256"] == f"{digest(weights)} {digest(data)}"
    planned = digest(data)
    data.write_bytes(b"other")
    with pytest.raises(UserError) as mistake:
        files.check()
    for named in (str(data), planned, digest(data)):
        assert named in str(mistake.value)


def test_trained_weights_must_be_those_of_their_record(tmp_path: Path) -> None:
    weights, record = tmp_path / "m.safetensors", tmp_path / "m.json"
    weights.write_bytes(b"trained")
    write_json(record, {"weights_sha256": digest(weights)})
    files = ModelFiles.of_job(job(weights=str(weights), further=[], trained=str(record)), [])
    files.check()
    weights.write_bytes(b"by hand")
    with pytest.raises(UserError, match=r"m\.safetensors"):
        files.check()


def test_a_head_that_was_fitted_on_another_backbone_is_refused(tmp_path: Path) -> None:
    head, backbone, record = tmp_path / "h", tmp_path / "b", tmp_path / "h.json"
    head.write_bytes(b"head")
    backbone.write_bytes(b"old")
    write_json(record, {"weights_sha256": digest(head), "backbone_sha256": digest(backbone)})
    inputs = job(weights=str(head), further=[str(backbone)], trained=str(record))
    ModelFiles.of_job(inputs, [digest(backbone)]).check()
    backbone.write_bytes(b"new")
    with pytest.raises(UserError, match="backbone"):
        ModelFiles.of_job(inputs, [digest(backbone)]).check()


def test_a_model_without_files_has_nothing_to_say() -> None:
    files = ModelFiles.of_job(job(weights=[], further=[], trained=[]), [])
    files.check()
    assert (files.weights, files.card) == (None, {})


def test_outputs_of_two_files_are_not_put_into_one_row(tmp_path: Path) -> None:
    logits, scores, extra = (tmp_path / name for name in ("l.safetensors", "s.parquet", "e.json"))
    told = {"weights_file": "own/m.safetensors", "weights_sha256": "1" * 64}
    write_arrays(logits, {"logits": np.zeros((1, 1))}, {"model": "m", **told})
    write_table(scores, pl.DataFrame({"x": [1]}), {"study": "s", **told})
    write_json(extra, {"model": "m", "extra_outputs": {}, **told})
    assert same_weights([logits, scores, extra]) == told
    write_json(extra, {"model": "m", "extra_outputs": {}, **told, "weights_sha256": "2" * 64})
    with pytest.raises(UserError) as mistake:
        same_weights([logits, scores, extra])
    for named in (str(logits), str(extra), "1" * 64, "2" * 64):
        assert named in str(mistake.value)


def test_what_says_nothing_of_a_commit_agrees_with_what_does(tmp_path: Path) -> None:
    one, other = tmp_path / "a.json", tmp_path / "b.json"
    write_json(one, {"weights_revision": "abc"})
    write_json(other, {})
    assert same_weights([other, one]) == {"weights_revision": "abc"}
    write_json(other, {"weights_revision": "abd"})
    with pytest.raises(UserError, match="'abd'"):
        same_weights([one, other])
