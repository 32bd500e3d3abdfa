"""Hugging Face classifiers from a hub on loopback: the logits of transformers' own pipeline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hub import LIBRARY, Hub
from networks import VIT_PROCESSOR, vit_files

REPO = "someone/small-vit"
LABELS = {0: "cat", 1: "Dog", 2: "bird"}
PIXELS = {"size": 32, "channels": 3, "interpolation": "bilinear"}
# Loads blocks by our loader until one is no mistake, and its repository by transformers itself;
# prints what it finds. The hub's address is read at import, so it is a process of its own.
PROGRAM = """
import json, sys
import numpy as np, torch
from PIL import Image
from stamp.core.errors import UserError
from stamp.models.loaders.registry import load_model
asked, folder = json.loads(sys.argv[1])
mistakes = []
for block, classes in asked:
    try:
        loaded = load_model(block, classes, None)
        break
    except UserError as mistake:
        mistakes.append(str(mistake))
else:
    print(json.dumps({"mistakes": mistakes}))
    sys.exit()
from transformers import AutoImageProcessor, AutoModelForImageClassification
theirs = AutoModelForImageClassification.from_pretrained(folder).eval()
processor = AutoImageProcessor.from_pretrained(folder)
rng = np.random.default_rng(0)
image = Image.fromarray(rng.integers(0, 256, (32, 32, 3), dtype=np.uint8))
pixels = torch.tensor(np.asarray(image)).permute(2, 0, 1)[None] / 255
mean, std = (torch.tensor(one)[:, None, None] for one in (loaded.mean, loaded.std))
with torch.no_grad():
    ours = loaded.module((pixels - mean) / std)[0]
    other = theirs(**processor(image, return_tensors="pt")).logits[0]
print(json.dumps({
    "ours": ours.tolist(), "theirs": other.tolist(), "origin": dict(loaded.origin),
    "missing": loaded.missing, "parameters": loaded.parameters,
    "outputs": loaded.module.get_classifier().out_features,
}))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A small vision transformer as its repository holds it."""
    return vit_files(tmp_path_factory.mktemp("vit"), LABELS)


def asked(server: Hub, home: Path, *blocks: tuple[list[str], dict[str, Any]]) -> dict[str, Any]:
    """What the program says of blocks, each with the classes that a study has."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    kept = {key: value for key, value in kept.items() if not key.lower().endswith("_proxy")}
    kept |= {"HF_ENDPOINT": server.endpoint, "HF_HOME": str(home), "PYTHONPATH": str(LIBRARY)}
    common = {"source": "hf", "hub": REPO, "preprocessing": PIXELS}
    whole = [({**common, **block}, classes) for classes, block in blocks]
    line = [sys.executable, "-c", PROGRAM, json.dumps([whole, str(home)])]
    done = subprocess.run(line, env=kept, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_logits_are_those_of_transformers_in_the_order_of_the_studys_classes(
    tmp_path: Path, files: dict[str, bytes]
) -> None:
    with Hub(tmp_path / "hub") as hub:
        commit = hub.push(REPO, files)
        (tmp_path / "home").mkdir()
        for name, content in files.items():  # what transformers itself reads
            (tmp_path / "home" / name).write_bytes(content)
        block = {"labels": {"Dog": "dog"}, "revision": commit}
        found = asked(hub, tmp_path / "home", (["bird", "fish", "dog"], block))
        assert found["origin"]["hub"] == REPO and found["origin"]["revision"] == commit
        assert found["missing"] == [1] and found["outputs"] == 3
        assert found["ours"][0] == pytest.approx(found["theirs"][2], abs=1e-4)
        assert found["ours"][2] == pytest.approx(found["theirs"][1], abs=1e-4)
        assert found["parameters"] > 1000


def test_a_mistake_names_the_repository_and_what_would_be_right(
    tmp_path: Path, files: dict[str, bytes]
) -> None:
    classes = ["cat", "Dog", "bird"]
    odd = json.dumps({**VIT_PROCESSOR, "image_processor_type": "OddImageProcessor"}).encode()
    with Hub(tmp_path / "hub") as hub:
        hub.push(REPO, files)
        hub.push("someone/other", {**files, "config.json": b'{"model_type": "bert"}'})
        hub.push("someone/odd", {**files, "preprocessor_config.json": odd})
        size, name, label, kind, processor = asked(
            hub,
            tmp_path / "home",
            (classes, {"preprocessing": {"size": 64}}),
            (["dog", "cat"], {}),
            (classes, {"labels": {"fox": "cat"}}),
            (classes, {"hub": "someone/other"}),
            (classes, {"hub": "someone/odd"}),
        )["mistakes"]
    assert REPO in size and "size: 32" in size
    assert "did you mean 'dog'" in name
    assert "'fox'" in label
    assert "someone/other" in kind and "\n" not in kind
    assert "OddImageProcessor" in processor


@pytest.mark.parametrize(
    ("settings", "size", "shorter", "interpolation"),
    [
        ({"feature_extractor_type": "ViTFeatureExtractor", "resample": 3}, 224, None, "bicubic"),
        ({"image_processor_type": "ConvNextImageProcessor", "crop_pct": 0.875}, 384, None, None),
        (
            {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 224},
             "crop_pct": 0.875},
            224, 256, None,
        ),
        (
            {"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 256},
             "crop_size": {"height": 224, "width": 224}},
            224, 256, "bicubic",
        ),
    ],
)  # fmt: skip
def test_a_processor_is_read_with_the_defaults_of_its_class(
    settings: dict[str, Any], size: int, shorter: int | None, interpolation: str | None
) -> None:
    from stamp.config.preprocessing import Preprocessing
    from stamp.models.loaders.hf import processed

    found = processed(settings, "it")
    assert (found.size, found.shorter) == (size, shorter)
    assert interpolation in (None, found.interpolation)
    assert found.made_by(Preprocessing(**found.settings))
    assert not found.made_by(Preprocessing(**{**found.settings, "size": 32}))
