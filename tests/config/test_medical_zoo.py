"""The 44 chest X-ray models: every entry builds at its real architecture and runs an image."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from PIL import Image
from project import ROOT

from stamp.config.preprocessing import merged
from stamp.config.registries.model_sources import SOURCES
from stamp.config.zoo import read_zoo
from stamp.core.errors import UserError
from stamp.images.pixels import resize
from stamp.inference.logits import Forward, check_outputs
from stamp.models.classifier import classifier
from stamp.models.loaded_model import LoadedModel
from stamp.models.loaders.registry import load_model
from stamp.models.taps import Taps
from stamp.models.torchvision_ops import timm

ZOO = read_zoo(ROOT / "config" / "zoo" / "medical.yaml")
STUDY = yaml.safe_load((ROOT / "config" / "studies" / "medical.yaml").read_text())
CLASSES = STUDY["classes"]
AVAILABLE = [key for key, entry in ZOO.items() if "unavailable" not in entry]

# as the paper's table of scores prints them
LABELS = [
    *("ResNet-18", "ResNet-34", "ResNet-50", "ResNet-101", "ResNet-152"),
    *("DenseNet-121", "DenseNet-169", "DenseNet-201"),
    *("EfficientNet-B0", "EfficientNet-B4", "EfficientNetV2-S"),
    *("ConvNeXt-T", "ConvNeXt-S", "ConvNeXt-B"),
    *("ResNet50-CBAM", "ResNet50-SE", "ResNet50-BAM", "ResNet101-CBAM"),
    *("ViT-Tiny/16", "ViT-Small/16", "ViT-Base/16", "DeiT-Base/16", "Swin-T", "Swin-S", "Swin-B"),
    *("CoAtNet-0", "MaxViT-T", "MViTv2-T", "ConvFormer-S18", "CaFormer-S18", "MLP-Mixer-B/16"),
    *("DINOv2-B/14", "MAE-B/16", "DINO-B/16", "SAM-B/16", "MoCov3-B/16"),
    *("CLIP-B/16", "BiomedCLIP-B/16", "PubMedCLIP-B/32"),
    *("TXV-DN121-nih", "TXV-DN121-all", "TXV-DN121-pc", "TXV-ResNet-ae"),
    "RAD-DINO",
]

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
HALF = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
RADDINO = ((0.5307, 0.5307, 0.5307), (0.2583, 0.2583, 0.2583))
XRAY = ((0.5,), (1 / 2048,))
NORMALISED = {
    "efficientnetv2-s": HALF,
    "vit-tiny": HALF,
    "vit-small": HALF,
    "vit-base": HALF,
    "coatnet-0": HALF,
    "mixer-b16": HALF,
    "clip-b16": CLIP,
    "biomedclip-b16": CLIP,
    "pubmedclip-b32": CLIP,
    "rad-dino": RADDINO,
    "txv-dn121-nih": XRAY,
    "txv-dn121-all": XRAY,
    "txv-dn121-pc": XRAY,
}

# one of each kind of network whose maps timm gives too
COMPARED = (
    *("resnet18", "efficientnet-b0", "convnext-t", "resnet50-bam", "vit-tiny", "swin-t"),
    *(
        "coatnet-0",
        "maxvit-t",
        "mvitv2-t",
        "convformer-s18",
        "caformer-s18",
        "mixer-b16",
        "sam-b16",
    ),
)

# millions of parameters without the 1000-way classifier, from the architectures' papers
MILLIONS = {
    "resnet18": (11, 11.5),
    "resnet50": (23, 24),
    "resnet152": (57.5, 59),
    "densenet121": (6.9, 7.1),
    "efficientnet-b0": (3.9, 4.2),
    "convnext-b": (87, 88.5),
    "resnet50-cbam": (25.5, 26.5),
    "resnet50-se": (25.5, 26.5),
    "resnet50-bam": (23.7, 24.2),
    "vit-tiny": (5.4, 5.8),
    "vit-base": (85, 87),
    "swin-t": (27, 28.5),
    "mixer-b16": (58, 60),
    "dinov2-b14": (85, 87.5),
    "sam-b16": (88, 91),
    "pubmedclip-b32": (87, 88),
    "txv-dn121-all": (6.9, 7.1),
    "rad-dino": (85, 87.5),
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Single images are not worth more threads, which only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def block_of(key: str) -> dict[str, Any]:
    """The ``load`` block of an entry as the study completes it."""
    load = ZOO[key]["load"]
    return {
        **load,
        "preprocessing": merged(STUDY["preprocessing"], load.get("preprocessing", {})).settings,
    }


def needed(block: dict[str, Any]) -> set[str]:
    """The optional packages of a model."""
    return {"transformers", "torchxrayvision"} & {block["source"], *block.get("backbone", {})}


def bare(block: dict[str, Any]) -> LoadedModel:
    """The model of a block with random weights: nothing is downloaded."""
    torch.manual_seed(0)
    build = importlib.import_module(SOURCES[block["source"]].module).network
    return (
        build(block, CLASSES)
        if block["source"] == "torchxrayvision"
        else build(block, CLASSES, initial=False)
    )


def picture(block: dict[str, Any]) -> torch.Tensor:
    """A shaded disc, as a batch of the model's own pixels."""
    how = merged(block["preprocessing"])
    rows, columns = np.mgrid[-1:1:300j, -1:1:260j]
    shaded = np.clip(255 - 200 * (rows**2 + columns**2), 0, 255).astype(np.uint8)
    small = np.asarray(resize(Image.fromarray(shaded), how))
    return torch.from_numpy(small.reshape(1, how.size, how.size, how.channels).copy())


def check_taps(taps: Taps, loaded: LoadedModel, logits: np.ndarray) -> None:
    """The taps are there, in order, and the last one leads to the logits."""
    assert list(taps.pooled) == ["early", "mid", "late", "penultimate"]
    for features in taps.pooled.values():
        assert features.shape[0] == 1
        assert features.ndim == 2
        assert torch.isfinite(features).all()
    widths = [features.shape[1] for features in taps.pooled.values()]
    assert widths == sorted(widths)
    last = classifier(loaded.module)
    assert taps.classifier_input is not None
    assert taps.classifier_input.shape == (1, last.in_features)
    outputs = last(taps.classifier_input).numpy()[0]
    assert np.abs(logits[0][:, None] - outputs).min(axis=1).max() < 1e-4


def check_against_timm(taps: Taps, loaded: LoadedModel, pixels: torch.Tensor) -> None:
    """timm's own maps of the last block average to the last tap."""
    network: Any = loaded.module
    while hasattr(network, "network"):
        network = network.network
    kept = taps.pooled["penultimate"].clone()
    maps = network.forward_intermediates(pixels, indices=1, intermediates_only=True)
    assert torch.allclose(maps[-1].mean(dim=(2, 3)), kept, atol=1e-4)


@pytest.mark.parametrize("key", AVAILABLE)
def test_a_model_builds_at_its_real_architecture_and_runs_an_image(key: str) -> None:
    block = block_of(key)
    for package in needed(block):
        if find_spec(package) is None:
            pytest.skip(f"needs the optional package {package}")
    loaded = bare(block)
    mean, std = NORMALISED.get(key, IMAGENET)
    assert (loaded.mean, loaded.std) == (pytest.approx(mean), pytest.approx(std))
    assert loaded.missing == ()
    forward = Forward(loaded, "cpu")
    image = picture(block)
    with torch.inference_mode(), Taps(loaded.module) as taps:
        logits = forward(image)
        check_outputs(logits, 14, key)
        assert logits.shape == (1, 14)
        check_taps(taps, loaded, logits)
        pixels = forward.spread(image.permute(0, 3, 1, 2).float())
        assert pixels.shape[1] == len(mean)
        if key in COMPARED:
            check_against_timm(taps, loaded, pixels * forward.scale + forward.offset)
    if key in MILLIONS:
        least, most = MILLIONS[key]
        assert least <= loaded.parameters / 1e6 <= most


@pytest.mark.parametrize("key", [key for key in NORMALISED if key.startswith("txv")])
def test_pixels_of_torchxrayvision_span_its_range(key: str) -> None:
    pytest.importorskip("torchxrayvision")
    forward = Forward(bare(block_of(key)), "cpu")
    ends = torch.tensor([0.0, 255.0]) * forward.scale + forward.offset
    assert ends.flatten().tolist() == pytest.approx([-1024, 1024])


@pytest.mark.parametrize("shape", [(390, 320), (320, 390), (517, 500), (448, 448)])
def test_torchxrayvision_sees_the_pixels_of_its_own_transform(shape: tuple[int, int]) -> None:
    """Its centre crop and its resizing (skimage's), against ours, in gray levels of 256."""
    xrv = pytest.importorskip("torchxrayvision")
    width, height = shape
    rng = np.random.default_rng(3)
    coarse = Image.fromarray(rng.integers(0, 256, (4, 5), dtype=np.uint8))
    image = coarse.resize((width, height), Image.Resampling.BICUBIC)
    theirs = np.asarray(image, dtype=np.float32)[None]
    for step in (xrv.datasets.XRayCenterCrop(), xrv.datasets.XRayResizer(224)):
        theirs = step(theirs)
    own, squeezed = (
        np.asarray(resize(image, merged(STUDY["preprocessing"], settings)), dtype=np.float64)
        for settings in (ZOO["txv-dn121-nih"]["load"]["preprocessing"], {})
    )
    # they centre by whole pixels before resizing, we after it: up to half a pixel apart
    assert np.abs(own - theirs[0]).mean() < 1.5
    if width == height:
        assert np.array_equal(own, squeezed)
    elif max(shape) > 1.1 * min(shape):
        assert np.abs(squeezed - theirs[0]).mean() > 10


def test_the_model_without_a_classifier_says_so_and_is_not_faked() -> None:
    pytest.importorskip("torchxrayvision")
    unavailable = {key: e["unavailable"] for key, e in ZOO.items() if "unavailable" in e}
    assert list(unavailable) == ["txv-resnet-ae"]
    with pytest.raises(UserError, match=unavailable["txv-resnet-ae"]):
        load_model(block_of("txv-resnet-ae"), CLASSES, None)


def test_the_entries_are_the_papers_in_its_order() -> None:
    assert [entry["label"] for entry in ZOO.values()] == LABELS
    sources = Counter(entry["load"]["source"] for entry in ZOO.values())
    assert sources == {"finetune": 31, "probe": 8 + 1, "torchxrayvision": 4}


def test_groups_have_the_papers_sizes() -> None:
    counts = {
        part: Counter(entry[part] for entry in ZOO.values())
        for part in ("family", "objective", "regime")
    }
    assert len(counts["family"]) == 10
    assert sorted(counts["objective"].values()) == [1, 3, 4, 5, 31]
    assert counts["regime"] == {
        "NIH-CNN": 18,
        "NIH-ViT": 10,
        "NIH-Meta": 3,
        "Foundation probe": 8,
        "TorchXRayVision": 4,
        "Radiology foundation": 1,
    }


def test_the_coarse_groups_are_those_of_table_6() -> None:
    cnn = {"ResNet", "DenseNet", "EfficientNet", "Attention ResNet"}
    own = [entry for entry in ZOO.values() if entry["objective"] == "CE-Supervised"]
    assert all(
        entry["superfamily"] == ("CNN" if entry["family"] in cnn else "ViT/Modern") for entry in own
    )
    found = Counter(entry.get("superfamily") for entry in ZOO.values())
    assert found == {"CNN": 15, "ViT/Modern": 16, None: 44 - 31}


def test_every_tag_is_one_that_timm_has_weights_for() -> None:
    published = set(timm.list_pretrained())
    for key, entry in ZOO.items():
        load = entry["load"]
        if load["source"] == "finetune":
            assert load["initial"]["timm"] in published, key
        backbone = load.get("backbone", {})
        if "timm" in backbone and not {"url", "hub"} & set(backbone):
            assert backbone["timm"] in published, key


def test_what_models_saw_and_were_exposed_to_has_names_that_exist() -> None:
    datasets = yaml.safe_load((ROOT / "config" / "datasets.yaml").read_text())
    for key, entry in ZOO.items():
        assert set(entry.get("contamination", [])) <= set(datasets), key
        assert set(entry["trained_on"]) <= {"train", "val", "calibration", "test"}, key
    assert all(
        ZOO[key]["trained_on"] == ["train"]
        for key in ZOO
        if ZOO[key]["load"]["source"] == "finetune"
    )
