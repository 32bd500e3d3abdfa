"""The files with an ONNX file's weights, as the package `onnx` knows them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from stamp.config.contents.onnx_data import external_files
from stamp.config.zoo import weight_files


def tensor(name: str, location: str | None) -> TensorProto:
    """A tensor with its data inside, or in a file."""
    made = numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(3, 4), name)
    if location is not None:
        raw = made.raw_data
        onnx.external_data_helper.set_external_data(made, location, 0, len(raw))
        made.ClearField("raw_data")
    return made


def model(*initializers: TensorProto, nodes: list | None = None, functions: list | None = None):
    graph = helper.make_graph(nodes or [], "g", [], [], list(initializers))
    made = helper.make_model(graph)
    made.functions.extend(functions or [])
    return made


def of_onnx(made: onnx.ModelProto) -> set[str]:
    """All external locations, by the package."""
    every = onnx.external_data_helper._get_all_tensors(made)
    return {
        entry.value
        for one in every
        if onnx.external_data_helper.uses_external_data(one)
        for entry in one.external_data
        if entry.key == "location"
    }


def write(path: Path, made: onnx.ModelProto) -> Path:
    path.write_bytes(made.SerializeToString())
    return path


def test_data_under_any_name_are_found(tmp_path: Path) -> None:
    inner = helper.make_graph([], "inner", [], [], [tensor("d", "inner/deep.bin")])
    branch = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    constant = helper.make_node("Constant", [], ["v"], value=tensor("v", "constants"))
    made = model(
        tensor("a", "weights.bin"),
        tensor("b", "weights.bin"),
        tensor("inside", None),
        nodes=[branch, constant],
    )
    expected = of_onnx(made)
    assert {"weights.bin", "inner/deep.bin", "constants"} == expected
    path = write(tmp_path / "m.onnx", made)
    assert external_files(path) == sorted(str(tmp_path / name) for name in expected)


def test_sparse_weights_and_functions_of_the_model_are_entered(tmp_path: Path) -> None:
    made = model()
    sparse = made.graph.sparse_initializer.add()
    sparse.values.CopyFrom(tensor("s", "sparse.bin"))
    constant = helper.make_node("Constant", [], ["v"], value=tensor("v", "function.bin"))
    opset = helper.make_opsetid("", 18)
    made.functions.append(helper.make_function("own", "f", [], ["v"], [constant], [opset]))
    found = external_files(write(tmp_path / "m.onnx", made))
    assert [Path(one).name for one in found] == ["function.bin", "sparse.bin"]


def test_what_onnx_itself_writes_apart_is_an_input_of_the_workflow(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save_model(
        model(tensor("a", None), tensor("b", None)),
        str(path),
        save_as_external_data=True,
        all_tensors_to_one_file=False,
        size_threshold=0,
    )
    files = weight_files({"source": "onnx", "file": str(path)})
    assert set(files.values()) == {str(path), str(tmp_path / "a"), str(tmp_path / "b")}


def test_a_file_without_data_apart_has_none(tmp_path: Path) -> None:
    assert external_files(write(tmp_path / "m.onnx", model(tensor("a", None)))) == []


@pytest.mark.parametrize("keep", range(0, 200, 7))
def test_a_cut_or_foreign_file_is_no_mistake_of_the_plan(tmp_path: Path, keep: int) -> None:
    whole = model(tensor("a", "weights.bin"), tensor("inside", None)).SerializeToString()
    path = tmp_path / "m.onnx"
    path.write_bytes(whole[:keep])
    assert external_files(path) in ([], [str(tmp_path / "weights.bin")])
    path.write_bytes(bytes(reversed(whole[: keep + 1])))
    assert isinstance(external_files(path), list)
    path.unlink()
    assert external_files(path) == []


def test_a_rewritten_file_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", model(tensor("a", "first")))
    assert [Path(one).name for one in external_files(path)] == ["first"]
    write(path, model(tensor("a", "second")))
    assert [Path(one).name for one in external_files(path)] == ["second"]
