"""The ImageNet zoo: timm's own tags and preprocessing, and heads that say nothing are found out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from project import ROOT

from stamp.config.preprocessing import merged
from stamp.config.zoo import read_zoo
from stamp.core.artifacts import array_metadata, ids_digest, write_json
from stamp.core.errors import UserError
from stamp.images.pixel_cache import PixelCache
from stamp.inference.logits import Execution, extract_logits
from stamp.models.loaded_model import LoadedModel
from stamp.models.loaders.registry import load_model
from stamp.models.loaders.timm import attach_random_head
from stamp.models.torchvision_ops import timm
from stamp.scoring.calibrate import HIGHEST, Performance, exclusion, fit_temperature

ZOO = read_zoo(ROOT / "config" / "zoo" / "natural.yaml")
HEADLESS = {key: entry for key, entry in ZOO.items() if "head" in entry["load"]}
SHOWN = {key: entry for key, entry in ZOO.items() if "reference" in entry}
WORKING = {key: entry for key, entry in ZOO.items() if key not in {*HEADLESS, *SHOWN}}
TAGGED = {key: entry["load"] for key, entry in ZOO.items() if "url" not in entry["load"]}

TAGS = {
    *(f"resnet{depth}.a1_in1k" for depth in (18, 34, 50, 101, 152)),
    *("densenet121.ra_in1k", "efficientnet_b0.ra_in1k", "efficientnet_b4.ra2_in1k"),
    "tf_efficientnetv2_s.in1k",
    *(f"convnext_{size}.fb_in1k" for size in ("tiny", "small", "base")),
    *(f"vit_{s}_patch16_224.augreg_in21k_ft_in1k" for s in ("small", "base", "large")),
    *(f"swin_{size}_patch4_window7_224.ms_in1k" for size in ("tiny", "small")),
    "swin_base_patch4_window7_224.ms_in22k_ft_in1k",
    *(f"deit_{size}_patch16_224.fb_in1k" for size in ("tiny", "small", "base")),
    *("mixer_b16_224.goog_in21k_ft_in1k", "convformer_s18.sail_in1k", "caformer_s18.sail_in1k"),
    *("regnety_032.ra_in1k", "coatnet_0_rw_224.sw_in1k", "nfnet_l0.ra2_in1k"),
}

# millions of parameters as the architectures' papers print them
MILLIONS = {
    **{"resnet18": 11.7, "resnet34": 21.8, "resnet50": 25.6, "resnet101": 44.5, "resnet152": 60.2},
    **{"densenet121": 8.0, "efficientnet-b0": 5.3, "efficientnet-b4": 19.3},
    **{"convnext-t": 28.6, "convnext-s": 50.2, "convnext-b": 88.6, "regnety-032": 19.4},
    **{"deit-tiny": 5.7, "deit-small": 22.1, "deit-base": 86.6, "vit-large": 304.3},
    **{"swin-t": 28.3, "swin-s": 49.6, "swin-b": 87.8, "mixer-b16": 59.9, "convformer-s18": 26.8},
}


def test_the_models_are_the_27_tags_vit_tiny_for_reference_and_five_without_a_head() -> None:
    assert {entry["load"]["name"] for entry in WORKING.values()} == TAGS
    assert len(WORKING) == len(TAGS) == 27
    assert [entry["label"] for entry in SHOWN.values()] == ["ViT-Tiny/16"]
    assert len(HEADLESS) == 5
    assert len({entry["label"] for entry in ZOO.values()}) == len(ZOO) == 33


def test_supervised_models_are_cnns_or_modern_by_their_family() -> None:
    cnn = {"ResNet", "DenseNet", "EfficientNet", "RegNet"}
    for entry in (*WORKING.values(), *SHOWN.values()):
        assert entry["superfamily"] == ("CNN" if entry["family"] in cnn else "ViT/Modern")
    assert Counter(entry["superfamily"] for entry in WORKING.values()) == {
        "CNN": 11,
        "ViT/Modern": 16,
    }
    assert not any("superfamily" in entry for entry in HEADLESS.values())


@pytest.mark.parametrize("key", TAGGED)
def test_preprocessing_is_the_tags_own_in_timm(key: str) -> None:
    load = TAGGED[key]
    record: Any = timm.get_pretrained_cfg(load["name"])
    data = timm.data.resolve_data_config(pretrained_cfg=record.to_dict())
    assert data["crop_mode"] == "center"
    assert load["preprocessing"] == {
        "channels": data["input_size"][0],
        "size": data["input_size"][1],
        "interpolation": data["interpolation"],
        "crop": data["crop_pct"],
    }
    assert data["input_size"][1] == data["input_size"][2]


@pytest.mark.parametrize("key", TAGGED)
def test_weights_are_in_timms_part_of_the_hub_and_heads_are_where_they_are_said_to_be(
    key: str,
) -> None:
    name = TAGGED[key]["name"]
    record: Any = timm.get_pretrained_cfg(name)
    assert name in timm.list_pretrained()
    assert record.hf_hub_id == f"timm/{name}"
    assert record.num_classes == (0 if key in HEADLESS else 1000)
    assert not record.label_offset


@pytest.mark.parametrize("key", ZOO)
def test_a_model_has_a_thousand_outputs_at_its_size(key: str) -> None:
    """On torch's meta device: every layer is built and shaped, and no number computed."""
    load = ZOO[key]["load"]
    size = load["preprocessing"]["size"]
    with torch.device("meta"), torch.inference_mode():
        module = timm.create_model(load["name"], num_classes=1000).eval()
        assert module(torch.zeros(2, 3, size, size)).shape == (2, 1000)
    if key in MILLIONS:
        found = sum(parameter.numel() for parameter in module.parameters()) / 1e6
        assert round(found, 1) == MILLIONS[key]


def test_groups_are_ten_families_and_the_headless_are_apart() -> None:
    header = (ROOT / "config" / "zoo" / "natural.yaml").read_text().partition("\n\n")[0]
    families = Counter(entry["family"] for entry in WORKING.values())
    assert len(families) == 10
    assert all(family in header for family in families)
    assert {entry["family"] for entry in HEADLESS.values()} <= set(families)
    assert {(e["objective"], e["regime"]) for e in HEADLESS.values()} == {("SSL", "No head")}
    assert {entry["objective"] for entry in WORKING.values()} == {"Supervised"}
    for entry in WORKING.values():
        first = "in21k" in entry["load"]["name"] or "in22k" in entry["load"]["name"]
        assert entry["regime"] == ("ImageNet-21k" if first else "ImageNet-1k")
    assert all(entry["trained_on"] == [] for entry in ZOO.values())


def test_27_models_share_six_pixel_caches() -> None:
    keys = Counter(merged(entry["load"]["preprocessing"]).key for entry in WORKING.values())
    assert keys == {
        "224-rgb-bicubic-crop0.95": 7,
        "224-rgb-bicubic-crop0.875": 6,
        "224-rgb-bicubic-crop0.9": 10,
        "224-rgb-bicubic-crop1": 2,
        "300-rgb-bicubic-crop1": 1,
        "320-rgb-bicubic-crop0.875": 1,
    }


# --- heads ---------------------------------------------------------------------------------------

SMALL: dict[str, Any] = {
    "img_size": 32,
    "patch_size": 8,
    "embed_dim": 192,
    "depth": 2,
    "num_heads": 3,
}
CLASSES, IMAGES = 100, 1000


@pytest.fixture(scope="module")
def sample() -> tuple[Any, np.ndarray, np.ndarray]:
    """A network without a head, its features of patterns in noise, and their classes."""
    rng = np.random.default_rng(0)
    patterns = rng.normal(size=(CLASSES, 3, 8, 8)).repeat(4, axis=2).repeat(4, axis=3)
    labels = np.arange(IMAGES) % CLASSES
    images = patterns[labels] + rng.normal(size=(IMAGES, 3, 32, 32))
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        torch.manual_seed(0)
        module = timm.create_model("vit_tiny_patch16_224", num_classes=0, **SMALL).eval()
        features = module(torch.from_numpy(images).float()).numpy()
    return module, features, labels


def untrained(sample: tuple[Any, np.ndarray, np.ndarray], name: str) -> np.ndarray:
    """Logits of the network under a head of its own name."""
    module, features, _ = sample
    attach_random_head(module, CLASSES, name)
    with torch.inference_mode():
        return module.get_classifier()(torch.from_numpy(features)).numpy().astype(np.float64)


def accuracy(logits: np.ndarray, labels: np.ndarray) -> float:
    return float(np.mean(logits.argmax(axis=1) == labels))


def test_the_chance_rule_finds_every_untrained_head_and_the_temperature_rule_only_some(
    sample: tuple[Any, np.ndarray, np.ndarray],
) -> None:
    """Where the outputs say nothing, the best T is the bound, or some number that luck decides."""
    labels = sample[2]
    found = []
    for number in range(40):
        logits = untrained(sample, f"head {number}") / 4  # as of features a quarter the length
        fitted = fit_temperature(logits, labels, "multiclass")
        right = accuracy(logits, labels)
        assert exclusion("chance", fitted.value, Performance(right, "multiclass", CLASSES))
        found.append(fitted)
    apart = [
        exclusion("temperature", t.value, Performance(0.0, "multiclass", CLASSES)) for t in found
    ]
    bounds = [t for t in found if t.bound == "upper"]
    assert len(bounds) > len(found) / 4
    assert {t.value for t in bounds} == {HIGHEST}
    assert len(found) / 4 < sum(line is None for line in apart) < len(found) / 2


def test_a_temperature_is_the_logits_scale_whether_or_not_the_head_works(
    sample: tuple[Any, np.ndarray, np.ndarray],
) -> None:
    _, features, labels = sample
    half = IMAGES // 2  # the nearest class mean of one half classifies the other
    means = np.stack([features[:half][labels[:half] == k].mean(axis=0) for k in range(CLASSES)])
    working = features[half:] @ means.T - (means**2).sum(axis=1) / 2
    truth = labels[half:]
    assert accuracy(working, truth) > 0.5
    for logits, answers, chance in (
        (working, truth, False),
        (untrained(sample, "n0"), labels, True),
    ):
        plain = fit_temperature(logits, answers, "multiclass")
        assert plain.bound is None
        for factor in (1 / plain.value, 6 / plain.value):
            fitted = fit_temperature(factor * logits, answers, "multiclass")
            assert fitted.value == pytest.approx(factor * plain.value, rel=1e-3)
            apart = exclusion("temperature", fitted.value, Performance(0.0, "multiclass", CLASSES))
            assert (apart is not None) == (factor * plain.value > 3)
            right = accuracy(factor * logits, answers)
            found = exclusion("chance", fitted.value, Performance(right, "multiclass", CLASSES))
            assert (found is not None) == chance


def test_a_checkpoint_with_a_projector_gives_its_backbone_under_an_untrained_head(
    tmp_path: Path,
) -> None:
    """MoCo's files hold two encoders, each with a projector in the place of the head."""
    small = {**SMALL, "embed_dim": 48}
    donor = timm.create_model("vit_base_patch16_224", num_classes=0, **small).state_dict()
    projector = {"head.0.weight": torch.ones(9, 48), "head.1.running_mean": torch.ones(9)}
    state = {f"module.base_encoder.{k}": v for k, v in {**donor, **projector}.items()}
    state |= {f"module.momentum_encoder.{k}": torch.zeros_like(v) for k, v in donor.items()}
    path = tmp_path / "vit.pth.tar"
    torch.save({"epoch": 300, "state_dict": state, "arch": "vit_base"}, path)
    load = {**ZOO["mocov3-b16"]["load"], "file": str(path), "args": small}
    load["preprocessing"] = {**load["preprocessing"], "size": 32}
    del load["url"]
    loaded = load_model(load, ["a", "b", "c"], None)
    found = loaded.module.state_dict()
    assert all(torch.equal(found[name], tensor) for name, tensor in donor.items())
    assert set(found) - set(donor) == {"head.weight", "head.bias"}
    assert loaded.mean == pytest.approx((0.485, 0.456, 0.406))
    del state["module.base_encoder.norm.weight"]
    torch.save({"state_dict": state}, path)
    with pytest.raises(UserError, match=r"lacks 'norm\.weight'"):
        load_model(load, ["a", "b", "c"], None)


def test_an_untrained_head_is_its_names_and_changes_nothing_else() -> None:
    module: Any = timm.create_model("test_vit", num_classes=1000)
    body = {k: v.clone() for k, v in module.state_dict().items() if not k.startswith("head.")}
    heads = []
    for name in ("a", "b", "a"):
        attach_random_head(module, 7, name)
        heads.append(module.get_classifier().weight.detach().clone())
    assert torch.equal(heads[0], heads[2])
    assert not torch.equal(heads[0], heads[1])
    assert all(torch.equal(module.state_dict()[name], tensor) for name, tensor in body.items())
    with (
        pytest.raises(UserError, match="for networks that end in a linear layer"),
        torch.device("meta"),
    ):
        attach_random_head(timm.create_model("caformer_s18"), 7, "a")


def test_a_word_that_is_no_kind_of_head_is_one_line(tmp_path: Path) -> None:
    entry = "{label: a, family: a, objective: a, regime: a, load: {source: timm, name: resnet18, "
    (tmp_path / "zoo.yaml").write_text(f"m: {entry}preprocessing: {{size: 8}}, head: randm}}}}\n")
    with pytest.raises(UserError, match=r"head: unknown value 'randm': did you mean 'random'\?"):
        read_zoo(tmp_path / "zoo.yaml")


def test_the_logits_say_which_weights_of_the_hub_made_them(tmp_path: Path) -> None:
    class Mean(torch.nn.Module):
        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            return pixels.mean(dim=(2, 3))

    ids = ["i0", "i1"]
    pixels = np.zeros((2, 4, 4, 3), dtype=np.uint8)
    np.save(tmp_path / "c.npy", pixels)
    write_json(tmp_path / "c.json", {"ids": ids_digest(ids)})
    cache = PixelCache(tmp_path / "c.npy", tmp_path / "c.json", ids)
    origin = {"hub": "timm/a.b", "hub_file": "model.safetensors", "revision": "0" * 40}
    loaded = LoadedModel(Mean(), (0.5,) * 3, (0.5,) * 3, origin=origin)
    target = tmp_path / "out.safetensors"
    metadata = {"model": "m", "view": "v"}
    extract_logits(target, cache, loaded, ["a", "b", "c"], metadata, Execution("cpu"))
    found = array_metadata(target)
    assert {key: found[f"weights_{key}"] for key in origin} == origin
