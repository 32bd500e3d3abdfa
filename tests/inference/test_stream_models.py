"""Several models over a streamed target: decoded once, each as if it had run alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image
from torch import nn

from stamp.config.preprocessing import Preprocessing
from stamp.core.artifacts import write_table
from stamp.core.errors import UserError
from stamp.images import decoded_images
from stamp.images.pixels import decode
from stamp.inference import predictions, stream_models
from stamp.inference.logits import Execution
from stamp.inference.predictions import StreamedTarget, stream
from stamp.inference.provenance import ModelFiles
from stamp.inference.stream_models import StreamedModel, stream_together
from stamp.models.loaded_model import LoadedModel

HOW, CLASSES, COUNT = Preprocessing(8, 3), ["a", "b", "c"], 22
CPU = Execution("cpu", threads=2, batch=3)
NAMES = ("x", "y", "z")


class Colours(nn.Module):
    """Three fixed mixtures of the mean colours; the third image of a broken one is infinite."""

    def __init__(self, name: str, broken: bool) -> None:
        super().__init__()
        torch.manual_seed(ord(name))
        self.head, self.broken, self.seen = nn.Linear(3, 3), broken, 0

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        self.seen += len(pixels)
        outputs = self.head(pixels.mean(dim=(2, 3)))
        return outputs / 0 if self.broken and self.seen > 9 else outputs


@pytest.fixture
def streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StreamedTarget:
    """A target of 22 images in parts of 8."""
    monkeypatch.setattr(predictions, "PART", 8)
    rng, rows = np.random.default_rng(0), []
    for number in range(COUNT):
        path = tmp_path / f"{number}.png"
        Image.fromarray(rng.integers(0, 256, (9, 9, 3), dtype=np.uint8)).save(path)
        rows.append({"image": f"i{number}", "path": str(path), "domain": "d"})
    write_table(tmp_path / "far.parquet", pl.DataFrame(rows), {})
    return StreamedTarget(tmp_path / "far.parquet", HOW, len(CLASSES), np.arange(3))


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> dict[str, Colours]:
    """The networks that were loaded, by name; one of kind `lost` can't be."""
    found: dict[str, Colours] = {}

    def load(name: str, block: Any, classes: Any, weights: Any) -> LoadedModel:
        if block["kind"] == "lost":
            raise UserError(f"model '{name}': no weights")
        found[name] = Colours(name, block["kind"] == "broken")
        return LoadedModel(found[name], (0.5,) * 3, (0.25,) * 3)

    monkeypatch.setattr(stream_models, "load_named", load)
    return found


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each image was decoded."""
    found: Counter[str] = Counter()

    def counting(path: str, *how: Any) -> np.ndarray:
        found[Path(path).stem] += 1
        return decode(path, *how)

    monkeypatch.setattr(decoded_images, "decode", counting)
    return found


def model(folder: Path, name: str, kind: str = "plain") -> StreamedModel:
    block = {"source": "timm", "kind": kind}
    params = {"load": block, "versions": {}, "classes": CLASSES, "content": None, "code": "1"}
    return StreamedModel(name, folder / f"{name}.safetensors", ModelFiles(), params)


def finish(own: StreamedModel, streamed: StreamedTarget) -> bytes:
    """What a model's own job does: the bytes of its file."""
    run = own.run(streamed, CPU)
    for mistake in stream([run], streamed, CPU).values():
        raise UserError(mistake)
    run.write()
    return own.target.read_bytes()


def alone(folder: Path, name: str, streamed: StreamedTarget) -> bytes:
    folder.mkdir(exist_ok=True)
    return finish(model(folder, name), streamed)


def test_models_that_run_together_have_the_bytes_of_models_that_run_alone(
    tmp_path: Path, streamed: StreamedTarget, loads: dict, decoded: Counter[str]
) -> None:
    expected = {name: alone(tmp_path / "alone", name, streamed) for name in NAMES}
    assert set(decoded.values()) == {3} and len(decoded) == COUNT
    decoded.clear()
    models = [model(tmp_path, name) for name in NAMES]
    stream_together(models, streamed, CPU, most=4)
    assert set(decoded.values()) == {1} and len(decoded) == COUNT
    seen = {name: loads[name].seen for name in NAMES}
    assert seen == dict.fromkeys(NAMES, COUNT)
    found = {own.name: finish(own, streamed) for own in models}
    assert found == expected and set(decoded.values()) == {1}
    assert {path.name for path in tmp_path.glob(".*")} == set()


def test_no_more_models_than_told_are_in_a_pass(
    tmp_path: Path, streamed: StreamedTarget, loads: dict, decoded: Counter[str]
) -> None:
    stream_together([model(tmp_path, name) for name in "uvwx"], streamed, CPU, most=3)
    assert set(decoded.values()) == {2} and sorted(loads) == list("uvwx")


def test_a_model_that_would_be_alone_is_left_to_its_own_job(
    tmp_path: Path, streamed: StreamedTarget, loads: dict, decoded: Counter[str]
) -> None:
    stream_together([model(tmp_path, "x")], streamed, CPU, most=4)
    stream_together([model(tmp_path, name) for name in NAMES], streamed, CPU, most=1)
    assert not loads and not decoded


def test_rows_made_from_something_else_are_not_taken_up(
    tmp_path: Path, streamed: StreamedTarget, loads: dict
) -> None:
    stream_together([model(tmp_path, name) for name in "xy"], streamed, CPU, most=4)
    x, y = (model(tmp_path, name) for name in "xy")
    x.params["code"] = "2"
    finish(x, streamed)
    finish(y, streamed)
    assert (loads["x"].seen, loads["y"].seen) == (COUNT, 0)


def test_a_killed_pass_goes_on_after_the_last_part_that_each_model_kept(
    tmp_path: Path, streamed: StreamedTarget, loads: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {name: alone(tmp_path / "alone", name, streamed) for name in NAMES}

    def killed(before: int) -> None:
        def failing(path: str, *how: Any) -> np.ndarray:
            if int(Path(path).stem) >= before:
                raise KeyboardInterrupt
            return decode(path, *how)

        monkeypatch.setattr(decoded_images, "decode", failing)

    killed(before=18)  # two parts of eight are kept
    with pytest.raises(KeyboardInterrupt):
        stream_together([model(tmp_path, name) for name in "xy"], streamed, CPU, most=4)
    killed(before=COUNT)
    models = [model(tmp_path, name) for name in NAMES]
    stream_together(models, streamed, CPU, most=4)
    seen = {name: loads[name].seen for name in NAMES}
    assert seen == {"x": COUNT - 16, "y": COUNT - 16, "z": COUNT}
    assert {own.name: finish(own, streamed) for own in models} == expected


@pytest.mark.parametrize("kind", ["broken", "lost"])
def test_a_model_that_fails_is_left_to_its_own_job_and_holds_nobody_up(
    tmp_path: Path, streamed: StreamedTarget, loads: dict, kind: str
) -> None:
    expected = {name: alone(tmp_path / "alone", name, streamed) for name in "xz"}
    models = [model(tmp_path, "x"), model(tmp_path, "y", kind), model(tmp_path, "z")]
    stream_together(models, streamed, CPU, most=4)
    assert {own.name: finish(own, streamed) for own in models if own.name != "y"} == expected
    with pytest.raises(UserError, match="model 'y'"):
        finish(models[1], streamed)
