"""Loaders: the numbers of the file in the right places, and no file that brings code with it."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from stamp.config.registries import model_sources as registry
from stamp.core.errors import UserError
from stamp.models import attention, backbones, weights
from stamp.models.architectures import build
from stamp.models.classifier import body_parameters, head_parameters
from stamp.models.loaders import checkpoint
from stamp.models.loaders import finetune as finetuned
from stamp.models.loaders import probe as probed
from stamp.models.taps import Taps

CLASSES = ["Edema", "Effusion", "Mass"]
PIXELS = {"size": 32, "channels": 1}
SMALL_RESNET = {"layers": [1, 1, 1, 1], "channels": [8, 8, 16, 16]}
SMALL_VIT = {"img_size": 32, "patch_size": 8, "embed_dim": 48, "depth": 4, "num_heads": 3}


def image(channels: int = 3, size: int = 32) -> torch.Tensor:
    return torch.randn(2, channels, size, size, generator=torch.Generator().manual_seed(0))


def out(module: nn.Module, pixels: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return module.eval()(pixels)


def same(found: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> bool:
    return set(found) == set(wanted) and all(torch.equal(found[k], wanted[k]) for k in wanted)


def scrambled(module: nn.Module) -> nn.Module:
    """The module with random numbers for everything, running statistics included."""
    generator = torch.Generator().manual_seed(1)
    for name, tensor in module.state_dict().items():
        if tensor.is_floating_point():
            tensor.copy_(
                torch.rand(tensor.shape, generator=generator) * 0.2 + 0.05 * len(name) / 40
            )
    return module


# --- weights files -------------------------------------------------------------------------------


class Trap:
    """Unpickled, it would leave a file behind."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> tuple[Callable, tuple]:
        return os.system, (f"touch {self.path}",)


def trapped(path: Path, trap: Path, how: str) -> Path:
    """A weights file of one kind that would run a command."""
    state = {"weight": torch.zeros(2, 2), "bias": Trap(trap)}
    if how == "pickle":
        path.write_bytes(pickle.dumps({"state_dict": state}))
    else:
        torch.save(state, path, _use_new_zipfile_serialization=how == "zip")
    return path


@pytest.mark.parametrize("how", ["zip", "legacy", "pickle"])
def test_a_pickle_with_a_command_in_it_is_refused_by_name_and_does_not_run(
    tmp_path: Path, how: str
) -> None:
    trap = tmp_path / "ran"
    path = trapped(tmp_path / "w.pth", trap, how)
    with pytest.raises(UserError, match=r"w\.pth: ") as caught:
        weights.read_weights(nn.Linear(2, 2), path)
    assert not trap.exists()
    assert "\n" not in str(caught.value)
    if how != "pickle":
        assert "holds more than weights and was refused" in str(caught.value)
        assert "it asks for 'posix.system'" in str(caught.value)
    with open(path, "rb") as file:  # the trap is real: plain unpickling springs it
        if how == "pickle":
            pickle.load(file)
            assert trap.exists()


@pytest.mark.parametrize("wrapped", ["", "state_dict", "model"])
def test_a_prefix_takes_its_part_of_the_file(tmp_path: Path, wrapped: str) -> None:
    wanted = nn.Linear(3, 2)
    state = {f"module.encoder.{name}": value for name, value in wanted.state_dict().items()}
    state["module.other.weight"] = torch.zeros(7)
    torch.save({wrapped: state, "epoch": 3} if wrapped else state, tmp_path / "w.pth")
    found = nn.Linear(3, 2)
    weights.read_weights(found, tmp_path / "w.pth", prefix="module.encoder.")
    assert same(found.state_dict(), wanted.state_dict())


@pytest.mark.parametrize(
    ("change", "settings", "line"),
    [
        ({"bias": None}, {}, "does not fit the architecture: lacks 'bias'"),
        ({"extra": torch.ones(1)}, {}, "does not fit the architecture: has an unknown 'extra'"),
        ({"bias": torch.ones(5)}, {}, r"'bias' is \[5\], not \[2\]"),
        ({}, {"prefix": "wight"}, "no weight's name starts with 'wight': did you mean 'weight.'?"),
        ({"bias": None}, {"allow_missing": lambda name: name == "weight"}, "lacks 'bias'"),
    ],
)
def test_a_file_that_does_not_fit_says_where(
    tmp_path: Path, change: dict, settings: dict, line: str
) -> None:
    state = {**nn.Linear(3, 2).state_dict(), **change}
    torch.save({k: v for k, v in state.items() if v is not None}, tmp_path / "w.pth")
    with pytest.raises(UserError, match=line):
        weights.read_weights(nn.Linear(3, 2), tmp_path / "w.pth", **settings)


def test_allowed_names_may_be_absent_or_unknown_and_others_are_loaded(tmp_path: Path) -> None:
    save_file({"weight": torch.ones(2, 3), "head.x": torch.ones(1)}, tmp_path / "w.safetensors")
    found = nn.Linear(3, 2)
    before = found.bias.detach().clone()
    weights.read_weights(
        found,
        tmp_path / "w.safetensors",
        allow_missing=lambda name: name == "bias",
        allow_extra=lambda name: name.startswith("head."),
    )
    assert torch.equal(found.weight, torch.ones(2, 3))
    assert torch.equal(found.bias, before)


def test_a_file_of_another_digest_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.pth"
    torch.save(nn.Linear(2, 2).state_dict(), path)
    right = sha256(path.read_bytes()).hexdigest()
    assert weights.located({"file": str(path), "sha256": right}, "m") == path
    with pytest.raises(UserError, match=f"its sha256 is {right}, but {'0' * 64} is expected"):
        weights.located({"file": str(path), "sha256": "0" * 64}, "m")


@pytest.mark.parametrize("origin", [{}, {"file": "a", "url": "http://b"}])
def test_weights_come_from_one_place(origin: dict) -> None:
    with pytest.raises(UserError, match="m: its weights come from one of file, url, hub"):
        weights.located(origin, "m")


def test_a_file_of_the_hub_is_asked_for_by_name_and_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    path = tmp_path / "w.bin"
    path.touch()

    def download(repo: str, name: str, revision: str | None = None) -> str:
        asked.append((repo, name, revision))
        return str(path)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    origin = {"hub": "some/where", "hub_file": "w.bin", "revision": "abc"}
    assert weights.located(origin, "m") == path
    assert asked == [("some/where", "w.bin", "abc")]


def test_a_hub_that_fails_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **settings: Any) -> None:
        raise OSError("no route\nto host")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", fail)
    with pytest.raises(UserError, match=r"'model\.safetensors' of 'a/b' can't be had from the hub"):
        weights.located({"hub": "a/b"}, "m")
    with pytest.raises(
        UserError, match=r"of 'timm/resnet18\.a1_in1k' can't be had from the hub: no route$"
    ):
        backbones.from_hub({"timm": "resnet18.a1_in1k"}, {}, 3, 3)


def test_a_url_is_downloaded_once_and_its_digest_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import http.server
    from functools import partial
    from threading import Thread

    pytest.importorskip("stamp.data.transfer.fetch")
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    served = tmp_path / "served"
    served.mkdir()
    torch.save(nn.Linear(2, 2).state_dict(), served / "w.pth")
    digest = sha256((served / "w.pth").read_bytes()).hexdigest()
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(served))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/w.pth"
        path = weights.located({"url": url, "sha256": digest}, "m")
        server.shutdown()
    assert path.read_bytes() == (served / "w.pth").read_bytes()
    assert weights.located({"url": url, "sha256": digest}, "m") == path


# --- fine-tuned networks -------------------------------------------------------------------------


def block(**more: Any) -> dict[str, Any]:
    start = {"source": "finetune", "arch": "resnet50", "arch_args": SMALL_RESNET}
    return {**start, "initial": {"none": True}, "preprocessing": PIXELS, **more}


def plain_resnet(path: Path, classes: int = 10) -> dict[str, torch.Tensor]:
    """A file of a plain ResNet's weights, and what is in it."""
    network = scrambled(build("resnet50", SMALL_RESNET, classes, 3, 32))
    torch.save(network.state_dict(), path)
    return network.state_dict()


@pytest.mark.parametrize(("kind", "named"), [("cbam", {}), ("bam", {"timm": "resnet50.a1_in1k"})])
def test_a_plain_resnets_weights_go_into_one_with_attention(
    tmp_path: Path, kind: str, named: dict
) -> None:
    plain = plain_resnet(tmp_path / "plain.pth", classes=3)
    initial = {"file": str(tmp_path / "plain.pth"), **named}
    found = finetuned.network(block(attention=kind, initial=initial), CLASSES).module.state_dict()
    head = {"fc.weight", "fc.bias"}
    assert all(torch.equal(found[name], plain[name]) for name in set(plain) - head)
    assert not torch.equal(found["fc.weight"], plain["fc.weight"])
    new = set(found) - set(plain)
    assert len(new) > 10
    assert all(attention.is_attention(name) for name in new)
    assert not any(attention.is_attention(name) for name in plain)


def test_initial_weights_that_lack_a_plain_parameter_are_refused(tmp_path: Path) -> None:
    plain = plain_resnet(tmp_path / "plain.pth")
    del plain["layer2.0.conv1.weight"]
    torch.save(plain, tmp_path / "plain.pth")
    initial = {"file": str(tmp_path / "plain.pth")}
    with pytest.raises(UserError, match=r"lacks 'layer2\.0\.conv1\.weight'"):
        finetuned.network(block(attention="cbam", initial=initial), CLASSES)


def test_initial_weights_come_from_the_hub_through_timm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    donor = scrambled(build("resnet50", SMALL_RESNET, 1000, 3, 32))
    path = tmp_path / "model.safetensors"
    weights.write_weights(donor, path, {})
    asked: list[Any] = []

    def located(origin: dict[str, Any], what: str) -> Path:
        asked.append(origin)
        return path

    monkeypatch.setattr(backbones, "located", located)
    settings = block(initial={"timm": "resnet50.a1_in1k", "revision": "abc"}, attention="bam")
    found = finetuned.network(settings, CLASSES).module.state_dict()
    files = ("model.safetensors", "pytorch_model.bin")
    assert asked == [{"hub": "timm/resnet50.a1_in1k", "hub_file": files, "revision": "abc"}]
    assert torch.equal(found["layer4.0.conv2.weight"], donor.state_dict()["layer4.0.conv2.weight"])
    assert found["fc.weight"].shape == (3, 64)


def test_attention_goes_into_resnets_only() -> None:
    with pytest.raises(UserError, match="attention 'bam' goes into ResNets"):
        finetuned.network(
            block(arch="vit_tiny_patch16_224", arch_args=SMALL_VIT, attention="bam"), CLASSES
        )
    with pytest.raises(UserError, match="unknown attention 'cbm': did you mean 'cbam'"):
        attention.build("resnet18", {}, "cbm", 3, 3, 32)


def test_bottleneck_attention_is_the_published_one() -> None:
    torch.manual_seed(0)
    module: Any = attention.BAM(64).eval()
    features = torch.randn(2, 64, 9, 9)
    ratio = out(module, features) / features  # 1 + an attention in (0, 1)
    assert ((ratio > 1) & (ratio < 2)).all()
    for norm in (module.channel[-1], module.spatial[-1]):
        nn.init.zeros_(norm.weight)
    assert torch.allclose(out(module, features), 1.5 * features)
    channel = (64 * 4 + 4) + (4 * 64 + 64) + 2 * 64
    spatial = (64 * 4 + 2 * 4) + 2 * (4 * 4 * 9 + 2 * 4) + (4 + 2)
    assert sum(tensor.numel() for tensor in module.parameters()) == channel + spatial
    impulse = torch.zeros(1, 64, 31, 31)
    impulse[:, :, 15, 15] = 1
    reach = out(module.spatial[:-2], impulse) != out(module.spatial[:-2], 0 * impulse)
    rows = reach.any(dim=1)[0].any(dim=1).nonzero().flatten()
    assert rows.min() >= 15 - 8
    assert rows.max() <= 15 + 8
    assert len(rows) > 3  # two 3 x 3 convolutions of dilation 4


@pytest.mark.parametrize(
    ("arch", "arguments", "head"),
    [
        ("resnet50", SMALL_RESNET, ["fc.weight", "fc.bias"]),
        ("vit_tiny_patch16_224", SMALL_VIT, ["head.weight", "head.bias"]),
        ("densenet121", {"growth_rate": 8, "block_config": [2, 2]}, ["classifier.weight"]),
        ("caformer_s18", {}, ["head.fc.fc2.weight"]),
    ],
)
def test_head_and_body_are_all_parameters_once(arch: str, arguments: dict, head: list) -> None:
    module = finetuned.network(block(arch=arch, arch_args=arguments), CLASSES).module
    named = dict(module.named_parameters())
    heads, bodies = head_parameters(module), body_parameters(module)
    assert {id(one) for one in heads} >= {id(named[name]) for name in head}
    assert sum(one.shape[0] == len(CLASSES) for one in heads) == len(heads) == 2
    assert sorted(map(id, [*heads, *bodies])) == sorted(map(id, named.values()))


def test_a_trained_network_is_read_back_without_its_initial_weights(tmp_path: Path) -> None:
    settings = block(initial={"timm": "resnet50.a1_in1k"}, attention="cbam")
    made = finetuned.network(settings, CLASSES, initial=False)
    weights.write_weights(scrambled(made.module), tmp_path / "w.safetensors", {})
    loaded = finetuned.load(settings, CLASSES, tmp_path / "w.safetensors")
    assert torch.equal(out(loaded.module, image()), out(made.module, image()))
    assert loaded.mean == pytest.approx((0.485, 0.456, 0.406))
    assert len(loaded.std) == 3


def test_a_published_checkpoint_takes_the_place_of_training(tmp_path: Path) -> None:
    names = ["Mass", "Fracture", "Edema", "Effusion"]
    network = scrambled(build("resnet50", SMALL_RESNET, 4, 3, 32))
    state = {f"net.{name}": value for name, value in network.state_dict().items()}
    torch.save({"state_dict": state}, tmp_path / "w.pth")
    published = {"file": str(tmp_path / "w.pth"), "prefix": "net.", "outputs": names}
    loaded = finetuned.load(block(checkpoint=published), CLASSES, None)
    assert loaded.missing == ()
    assert torch.equal(out(loaded.module, image()), out(network, image())[:, [2, 3, 0]])


def test_an_architecture_of_fixed_size_is_built_for_the_models_pixels() -> None:
    settings = block(
        arch="vit_tiny_patch16_224", arch_args={"depth": 1}, preprocessing={"size": 64}
    )
    module: Any = finetuned.network(settings, CLASSES).module
    assert module.pos_embed.shape[1] == 1 + (64 // 16) ** 2
    assert out(module, image(size=64)).shape == (2, 3)


# --- checkpoints ---------------------------------------------------------------------------------


def published(path: Path, outputs: list[str] | None, classes: int) -> dict[str, Any]:
    weights.write_weights(scrambled(build("resnet50", SMALL_RESNET, classes, 3, 32)), path, {})
    start = {"source": "checkpoint", "arch": "resnet50", "arch_args": SMALL_RESNET}
    named = {} if outputs is None else {"outputs": outputs}
    return {**start, "file": str(path), "preprocessing": PIXELS, **named}


def test_outputs_are_matched_by_name_and_missing_classes_are_nan(tmp_path: Path) -> None:
    settings = published(tmp_path / "w.safetensors", ["Mass", "Hernia", "Edema"], 3)
    loaded = checkpoint.load(settings, CLASSES, None)
    plain = scrambled(build("resnet50", SMALL_RESNET, 3, 3, 32))
    expected, found = out(plain, image()), out(loaded.module, image())
    assert loaded.missing == (1,)
    assert torch.isnan(found[:, 1]).all()
    assert torch.equal(found[:, [0, 2]], expected[:, [2, 0]])


def test_outputs_in_the_studys_order_need_no_names(tmp_path: Path) -> None:
    settings = published(tmp_path / "w.safetensors", None, 3)
    loaded = checkpoint.load(settings, CLASSES, None)
    plain = scrambled(build("resnet50", SMALL_RESNET, 3, 3, 32))
    assert torch.equal(out(loaded.module, image()), out(plain, image()))


def test_a_checkpoint_may_have_its_own_normalisation_and_one_channel(tmp_path: Path) -> None:
    plain = scrambled(build("resnet50", SMALL_RESNET, 3, 1, 32))
    weights.write_weights(plain, tmp_path / "w.safetensors", {})
    settings = published(tmp_path / "other.safetensors", None, 3)
    settings |= {"file": str(tmp_path / "w.safetensors"), "mean": [0.4], "std": [0.3]}
    loaded = checkpoint.load(settings, CLASSES, None)
    assert (loaded.mean, loaded.std) == ((0.4,), (0.3,))
    assert torch.equal(out(loaded.module, image(1)), out(plain, image(1)))


@pytest.mark.parametrize(
    ("outputs", "line"),
    [
        (["mass", "Edema", "Effusion"], "unknown class 'mass': did you mean 'Mass'?"),
        (["Mass", "Mass", "Edema"], "the output 'Mass' is named twice"),
        (["Cat", "Dog", "Cow"], "none of its outputs is a class of the study"),
    ],
)
def test_names_that_can_not_be_meant_are_refused(
    tmp_path: Path, outputs: list[str], line: str
) -> None:
    with pytest.raises(UserError, match=line):
        checkpoint.load(published(tmp_path / "w.safetensors", outputs, 3), CLASSES, None)


# --- probes --------------------------------------------------------------------------------------


def probe(**backbone: Any) -> dict[str, Any]:
    start = {"timm": "vit_tiny_patch16_224", "args": SMALL_VIT}
    return {"source": "probe", "backbone": {**start, **backbone}, "preprocessing": PIXELS}


def vit() -> Any:
    return scrambled(build("vit_tiny_patch16_224", SMALL_VIT, 0, 3, 32))


def moco(path: Path) -> dict[str, torch.Tensor]:
    """MoCo v3's layout: encoder with a projector for a head, its momentum copy, a predictor."""
    state = vit().state_dict()
    held = {f"module.base_encoder.{name}": value for name, value in state.items()}
    held |= {f"module.momentum_encoder.{name}": value + 1 for name, value in state.items()}
    held |= {f"module.base_encoder.head.{n}.weight": torch.ones(4, 4) for n in (0, 3)}
    held |= {"module.predictor.0.weight": torch.ones(4, 4)}
    more = {"epoch": 300, "arch": "vit_base", "scaler": {"scale": 65536.0}}
    torch.save({"state_dict": held, "optimizer": {"state": {}, "param_groups": []}, **more}, path)
    return state


def biomedclip(path: Path) -> dict[str, torch.Tensor]:
    """open_clip's layout with a timm trunk: a text tower beside it, a projection above it."""
    state = vit().state_dict()
    held = {f"visual.trunk.{name}": value for name, value in state.items()}
    held |= {"visual.head.proj.weight": torch.ones(4, 48), "logit_scale": torch.tensor(4.6)}
    held |= {"text.transformer.embeddings.word_embeddings.weight": torch.ones(9, 4)}
    torch.save(held, path)
    return state


@pytest.mark.parametrize(
    ("make", "name", "prefix"),
    [
        (moco, "vit-b-300ep.pth.tar", "module.base_encoder."),
        (biomedclip, "open_clip_pytorch_model.bin", "visual.trunk."),
    ],
)
def test_a_backbone_in_a_published_layout_has_the_files_weights(
    tmp_path: Path, make: Callable, name: str, prefix: str
) -> None:
    state = make(tmp_path / name)
    found: Any = probed.backbone(probe(file=str(tmp_path / name), prefix=prefix))
    assert same(found.module.network.state_dict(), state)
    assert found.width == 48
    with torch.inference_mode():
        tokens = vit().eval().forward_features(image())
    assert torch.equal(out(found.module, image()), tokens[:, 0])
    assert not found.module.training
    assert not any(parameter.requires_grad for parameter in found.module.parameters())


def test_positions_are_resampled_to_the_models_pixels(tmp_path: Path) -> None:
    torch.save(vit().state_dict(), tmp_path / "w.pth")
    settings = probe(file=str(tmp_path / "w.pth"), args={**SMALL_VIT, "img_size": 48})
    settings["preprocessing"] = {"size": 48, "channels": 1}
    found: Any = probed.backbone(settings).module
    assert found.network.pos_embed.shape[1] == 1 + 6 * 6
    assert torch.equal(found.network.pos_embed[:, 0], vit().state_dict()["pos_embed"][:, 0])


def test_sam_is_pooled_over_its_neck_and_resamples_its_own_positions() -> None:
    small = {"embed_dim": 48, "depth": 2, "num_heads": 3, "neck_chans": 16, "img_size": 64}
    settings = probe(timm="samvit_base_patch16", args={**small, "global_attn_indexes": [1]})
    found: Any = probed.backbone(settings, initial=False)
    assert found.width == 16
    with torch.inference_mode():
        maps = found.module.network.forward_features(image())
    assert torch.allclose(out(found.module, image()), maps.mean(dim=(2, 3)), atol=1e-6)


def published_dinov2(width: int, layers: int, patch: int, grid: int) -> dict[str, torch.Tensor]:
    """The names that published files of DINOv2 have, whatever transformers calls them today."""
    random = torch.Generator().manual_seed(0)

    def some(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=random) * 0.1

    def pair(name: str, rows: int, *more: int) -> dict[str, torch.Tensor]:
        return {f"{name}.weight": some(rows, *more), f"{name}.bias": some(rows)}

    state = {
        "embeddings.cls_token": some(1, 1, width),
        "embeddings.mask_token": some(1, width),
        "embeddings.position_embeddings": some(1, 1 + grid**2, width),
        **pair("embeddings.patch_embeddings.projection", width, 3, patch, patch),
        **pair("layernorm", width),
    }
    for at in (f"encoder.layer.{number}" for number in range(layers)):
        state |= pair(f"{at}.norm1", width) | pair(f"{at}.norm2", width)
        for name in ("attention.query", "attention.key", "attention.value", "output.dense"):
            state |= pair(f"{at}.attention.{name}", width, width)
        state |= {f"{at}.layer_scale{number}.lambda1": some(width) for number in (1, 2)}
        state |= pair(f"{at}.mlp.fc1", 4 * width, width) | pair(f"{at}.mlp.fc2", width, 4 * width)
    return state


def raddino(path: Path) -> dict[str, Any]:
    config = {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4}
    config |= {"image_size": 56, "patch_size": 14}
    backbone: dict[str, Any] = {"transformers": "Dinov2Model", "config": config, "file": str(path)}
    backbone |= {"mean": [0.53] * 3, "std": [0.26] * 3}
    return {"source": "probe", "backbone": backbone, "preprocessing": {"size": 28, "channels": 1}}


def test_a_published_dinov2_file_gives_timms_features(tmp_path: Path) -> None:
    """The same weights in timm's network, an independent implementation, at the file's own size."""
    pytest.importorskip("transformers")
    state = published_dinov2(32, 4, 14, 4)
    save_file(state, tmp_path / "model.safetensors")
    settings = raddino(tmp_path / "model.safetensors") | {
        "preprocessing": {"size": 56, "channels": 1}
    }
    found = probed.backbone(settings)
    shape = {"img_size": 56, "embed_dim": 32, "depth": 4, "num_heads": 4}
    other: Any = build("vit_base_patch14_dinov2", shape, 0, 3, 56).eval()
    renamed = {
        "cls_token": state["embeddings.cls_token"],
        "pos_embed": state["embeddings.position_embeddings"],
    }
    for end in ("weight", "bias"):
        renamed[f"patch_embed.proj.{end}"] = state[f"embeddings.patch_embeddings.projection.{end}"]
        renamed[f"norm.{end}"] = state[f"layernorm.{end}"]
        for n in range(4):
            at = f"encoder.layer.{n}"
            for name in ("norm1", "norm2", "mlp.fc1", "mlp.fc2"):
                renamed[f"blocks.{n}.{name}.{end}"] = state[f"{at}.{name}.{end}"]
            parts = [
                state[f"{at}.attention.attention.{q}.{end}"] for q in ("query", "key", "value")
            ]
            renamed[f"blocks.{n}.attn.qkv.{end}"] = torch.cat(parts)
            renamed[f"blocks.{n}.attn.proj.{end}"] = state[f"{at}.attention.output.dense.{end}"]
    for n in range(4):
        for k in (1, 2):
            renamed[f"blocks.{n}.ls{k}.gamma"] = state[f"encoder.layer.{n}.layer_scale{k}.lambda1"]
    other.load_state_dict(renamed)
    assert torch.allclose(out(found.module, image(3, 56)), out(other, image(3, 56)), atol=1e-4)


def test_a_dinov2_file_is_run_at_another_size_and_tapped(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    save_file(published_dinov2(32, 4, 14, 4), tmp_path / "model.safetensors")
    loaded = probed.network(raddino(tmp_path / "model.safetensors"), CLASSES)
    with torch.inference_mode(), Taps(loaded.module) as taps:
        loaded.module(image(3, 28))
    tokens = []
    network: Any = loaded.module.network
    layer = network.network.encoder.layer[1]
    handle = layer.register_forward_hook(lambda _, inputs, output: tokens.append(output))
    out(loaded.module, image(3, 28))
    handle.remove()
    whole = tokens[0] if isinstance(tokens[0], torch.Tensor) else tokens[0][0]
    assert whole.shape[1] == 1 + 2 * 2
    assert torch.allclose(taps.pooled["mid"], whole[:, 1:].mean(dim=1), atol=1e-6)


def test_a_published_clip_file_fills_its_vision_tower(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    random = torch.Generator().manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    config = {**sizes, "num_attention_heads": 4, "image_size": 32, "patch_size": 16}
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.class_embedding": (32,),
        "embeddings.patch_embedding.weight": (32, 3, 16, 16),
        "embeddings.position_embedding.weight": (5, 32),
        "pre_layrnorm": (32,),
        "post_layernorm": (32,),
    }
    for at in ("encoder.layers.0", "encoder.layers.1"):
        shapes |= {f"{at}.layer_norm1": (32,), f"{at}.layer_norm2": (32,)}
        shapes |= {f"{at}.self_attn.{name}_proj": (32, 32) for name in ("q", "k", "v", "out")}
        shapes |= {f"{at}.mlp.fc1": (64, 32), f"{at}.mlp.fc2": (32, 64)}
    state = {}
    for name, shape in shapes.items():
        if name.startswith("embeddings"):
            state[name] = torch.randn(shape, generator=random)
        else:
            state[f"{name}.weight"] = torch.randn(shape, generator=random)
            state[f"{name}.bias"] = torch.randn(shape[:1], generator=random)
    held = {f"vision_model.{name}": value for name, value in state.items()}
    held |= {"vision_model.embeddings.position_ids": torch.arange(5)[None]}
    held |= {"text_model.final_layer_norm.weight": torch.ones(8), "logit_scale": torch.tensor(1.0)}
    torch.save(held, tmp_path / "pytorch_model.bin")
    backbone = {"transformers": "CLIPVisionModel", "config": config, "mean": [0.5], "std": [0.5]}
    backbone |= {"file": str(tmp_path / "pytorch_model.bin"), "mean": [0.5] * 3, "std": [0.3] * 3}
    settings = {"source": "probe", "backbone": backbone, "preprocessing": PIXELS}
    found: Any = probed.backbone(settings).module
    values = found.network.state_dict()
    for name, value in state.items():
        own = name if name in values else f"vision_model.{name}"
        assert torch.equal(values[own], value), name
    del held["vision_model.post_layernorm.bias"]
    torch.save(held, tmp_path / "pytorch_model.bin")
    with pytest.raises(
        UserError, match=r"does not fit CLIPVisionModel: lacks '.*post_layernorm\.bias'"
    ):
        probed.backbone(settings)


def test_a_backbone_of_transformers_without_the_package_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UserError, match="needs the package transformers: pip install transformers"):
        probed.backbone(raddino(tmp_path / "w.safetensors"), initial=False)


def test_a_probe_is_its_backbone_under_the_head_of_the_file(tmp_path: Path) -> None:
    torch.save(vit().state_dict(), tmp_path / "w.pth")
    weight, bias = torch.randn(3, 48), torch.randn(3)
    save_file({"weight": weight, "bias": bias}, tmp_path / "head.safetensors")
    settings = probe(file=str(tmp_path / "w.pth"))
    loaded = probed.load(settings, CLASSES, tmp_path / "head.safetensors")
    features = out(probed.backbone(settings).module, image())
    assert torch.allclose(out(loaded.module, image()), features @ weight.T + bias, atol=1e-4)
    assert loaded.mean == (0.5, 0.5, 0.5)
    save_file({"weight": weight[:, :5].contiguous(), "bias": bias}, tmp_path / "head.safetensors")
    with pytest.raises(UserError, match=r"'weight' is \[3, 5\], not \[3, 48\]"):
        probed.load(settings, CLASSES, tmp_path / "head.safetensors")


def test_probes_share_features_where_backbone_and_pixels_are_the_same() -> None:
    key = probed.backbone_key(probe())
    assert key == probed.backbone_key({**probe(), "penalty": [1.0], "standardise": False})
    assert key != probed.backbone_key({**probe(), "preprocessing": {"size": 48, "channels": 1}})
    assert key != probed.backbone_key(probe(timm="vit_small_patch16_224"))
    assert key.isalnum()


def test_unknown_weights_of_a_known_architecture_are_suggested() -> None:
    with pytest.raises(
        UserError, match=r"unknown weights 'a1_in1' of 'resnet50': did you mean 'a1_in1k'"
    ):
        backbones.published("resnet50.a1_in1")
    with pytest.raises(UserError, match="has no published normalisation: give mean and std"):
        backbones.normalisation({}, "metaformer:MetaFormer")


# --- torchxrayvision -----------------------------------------------------------------------------

ALL = [
    *("Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Effusion", "Emphysema", "Fibrosis"),
    *(
        "Hernia",
        "Infiltration",
        "Mass",
        "Nodule",
        "Pleural_Thickening",
        "Pneumonia",
        "Pneumothorax",
    ),
]


@pytest.fixture(scope="module")
def xrays() -> Any:
    """torchxrayvision's models, once torchvision can be imported."""
    from stamp.models.loaders import torchxrayvision as xray  # noqa: F401

    return pytest.importorskip("torchxrayvision.models")


def xray_block(**more: Any) -> dict[str, Any]:
    pixels = {"size": 224, "channels": 1}
    named = {"source": "torchxrayvision", "weights": "densenet121-res224-all"}
    return {**named, "preprocessing": pixels, **more}


@pytest.fixture(scope="module")
def theirs(xrays: Any) -> nn.Module:
    """A network as theirs were trained: random weights, no thresholds."""
    torch.manual_seed(0)
    made = xrays.DenseNet(num_classes=18, in_channels=1, **xrays.get_densenet_params("densenet"))
    return made.eval()


@pytest.mark.parametrize("how", ["zip", "legacy", "state", "safetensors"])
def test_a_file_as_torchxrayvision_publishes_it_gives_its_raw_logits_by_name(
    tmp_path: Path, xrays: Any, theirs: nn.Module, how: str
) -> None:
    from stamp.models.loaders import torchxrayvision as xray

    path = tmp_path / ("w.safetensors" if how == "safetensors" else "w.pt")
    if how == "safetensors":
        weights.write_weights(theirs, path, {})
    else:
        held = theirs.state_dict() if how == "state" else theirs
        torch.save(held, path, _use_new_zipfile_serialization=how != "legacy")
    loaded = xray.load(xray_block(file=str(path)), ALL, None)
    pixels = torch.rand(1, 1, 224, 224)
    found = out(loaded.module, (pixels - loaded.mean[0]) / loaded.std[0])
    expected = out(theirs, xrays_range(pixels))
    order = [xrays.model_urls["densenet121-res224-all"]["labels"].index(name) for name in ALL]
    assert torch.allclose(found, expected[:, order], atol=1e-4)
    assert order != sorted(order)
    assert loaded.missing == ()


def xrays_range(pixels: torch.Tensor) -> torch.Tensor:
    """torchxrayvision's own normalisation of 8-bit images, in numpy."""
    import torchxrayvision

    return torch.from_numpy(torchxrayvision.utils.normalize(255 * pixels.numpy(), 255))


def test_classes_that_a_model_was_not_trained_on_are_missing(
    tmp_path: Path, theirs: nn.Module
) -> None:
    from stamp.models.loaders import torchxrayvision as xray

    torch.save(theirs, tmp_path / "w.pt")
    settings = xray_block(weights="densenet121-res224-chex", file=str(tmp_path / "w.pt"))
    loaded = xray.load(settings, ALL, None)
    absent = [ALL[number] for number in loaded.missing]
    assert absent == [
        *("Emphysema", "Fibrosis", "Hernia", "Infiltration", "Mass", "Nodule"),
        "Pleural_Thickening",
    ]
    logits = out(loaded.module, torch.zeros(1, 1, 224, 224)).numpy()[0]
    assert np.flatnonzero(np.isnan(logits)).tolist() == list(loaded.missing)


@pytest.mark.parametrize("zipped", [True, False])
def test_code_hidden_in_a_pickled_network_is_refused_by_name_and_does_not_run(
    tmp_path: Path, theirs: nn.Module, zipped: bool
) -> None:
    from stamp.models.loaders import torchxrayvision as xray

    trap = tmp_path / "ran"
    theirs.note = Trap(trap)  # type: ignore[assignment]
    try:
        torch.save(theirs, tmp_path / "w.pt", _use_new_zipfile_serialization=zipped)
    finally:
        del theirs.note
    with pytest.raises(UserError, match=r"refused \(it asks for 'posix\.system'\)"):
        xray.load(xray_block(file=str(tmp_path / "w.pt")), ALL, None)
    assert not trap.exists()
    torch.load(tmp_path / "w.pt", weights_only=False)  # the trap is real
    assert trap.exists()


@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickled_network_of_another_class_is_refused_by_name(
    tmp_path: Path, zipped: bool
) -> None:
    from stamp.models.loaders import torchxrayvision as xray

    torch.save(nn.Embedding(2, 2), tmp_path / "w.pt", _use_new_zipfile_serialization=zipped)
    with pytest.raises(UserError, match=r"asks for 'torch\.nn\.modules\.sparse\.Embedding'"):
        xray.read_published(tmp_path / "w.pt")


def test_torchscript_is_refused(tmp_path: Path) -> None:
    from stamp.models.loaders import torchxrayvision as xray

    torch.jit.save(torch.jit.trace(nn.Linear(2, 2), torch.zeros(1, 2)), str(tmp_path / "w.pt"))
    with pytest.raises(UserError, match="is TorchScript, which carries code, and was refused"):
        xray.read_published(tmp_path / "w.pt")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"not a weights file", "can't be read as weights"),
        (pickle.dumps([1, 2]), "can't be read as weights"),
    ],
)
def test_a_file_that_is_no_weights_is_one_line(tmp_path: Path, content: bytes, line: str) -> None:
    from stamp.models.loaders import torchxrayvision as xray

    (tmp_path / "w.pt").write_bytes(content)
    with pytest.raises(UserError, match=line) as caught:
        xray.read_published(tmp_path / "w.pt")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"weights": "101-elastic"}, "an autoencoder: it has no classifier"),
        ({"weights": "densenet121-res224-al"}, "did you mean 'densenet121-res224-all'?"),
        ({"preprocessing": {"size": 224, "channels": 3}}, "take gray pixels"),
        ({}, "give file or url; published at https://github.com/mlmed/torchxrayvision"),
    ],
)
def test_mistakes_with_torchxrayvision_are_one_line(xrays: Any, more: dict, line: str) -> None:
    from stamp.models.loaders import torchxrayvision as xray

    with pytest.raises(UserError, match=line):
        xray.load(xray_block(**more), ALL, None)


def test_torchxrayvision_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from stamp.models.loaders import torchxrayvision as xray

    monkeypatch.setitem(sys.modules, "torchxrayvision", None)
    with pytest.raises(UserError, match="pip install torchxrayvision"):
        xray.network(xray_block(), ALL)


# --- taps and registry ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arch", "arguments"),
    [
        ("vit_tiny_patch16_224", {**SMALL_VIT, "reg_tokens": 2}),
        ("mlp_mixer:MlpMixer", {"img_size": 32, "patch_size": 8, "embed_dim": 16, "num_blocks": 4}),
        ("samvit_base_patch16", {"img_size": 32, "embed_dim": 48, "depth": 4, "num_heads": 3}),
    ],
)
def test_taps_are_timms_own_intermediate_features(arch: str, arguments: dict) -> None:
    module: Any = scrambled(build(arch, arguments, 3, 3, 32)).eval()
    with torch.inference_mode(), Taps(module) as taps:
        module(image())
        kept = dict(taps.pooled)
        maps = module.forward_intermediates(image(), indices=[0, 1, 2, 3], intermediates_only=True)
    for found, wanted in zip(kept.values(), maps, strict=True):
        assert torch.allclose(found, wanted.mean(dim=(2, 3)), atol=1e-4)


def test_taps_of_a_staged_network_fall_on_quarters_of_its_blocks() -> None:
    module: Any = build("resnet50", {"layers": [1, 2, 4, 1], "channels": [4, 4, 8, 8]}, 3, 3, 32)
    places = list(Taps(module).places.values())
    assert places == [module.layer2[0], module.layer3[0], module.layer3[2], module.layer4[0]]


def test_taps_leave_nothing_behind_and_see_the_latest_batch() -> None:
    module = build("resnet50", SMALL_RESNET, 3, 3, 32).eval()
    with torch.inference_mode(), Taps(module) as taps:
        module(image())
        module(image()[:1])
    assert {len(features) for features in taps.pooled.values()} == {1}
    assert taps.classifier_input is not None
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
    with torch.inference_mode():
        found = finetuned.classifier(module)(taps.classifier_input)
    assert torch.equal(found, out(module, image()[:1]))


def test_a_network_without_blocks_can_not_be_tapped() -> None:
    with (
        pytest.raises(UserError, match="no blocks are known in Linear"),
        Taps(build("linear", {}, 3, 1, 8)),
    ):
        pass


def test_sources_name_the_rules_that_train_them() -> None:
    trainers = {name: source.trainer for name, source in registry.SOURCES.items()}
    assert {name for name, rule in trainers.items() if rule} == {"train", "finetune", "probe"}
    assert all(rule == name for name, rule in trainers.items() if rule)
    assert all(source.trained == bool(source.trainer) for source in registry.SOURCES.values())


def test_versions_count_the_packages_that_a_model_runs_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(registry.versions("probe", probe())) == {"torch", "timm"}
    named = registry.versions("probe", raddino(Path("w")))
    assert set(named) == {"torch", "timm", "transformers"}
    assert registry.versions("finetune")["torch"] == torch.__version__
    monkeypatch.setattr(registry, "_version", registry._version.__wrapped__)
    monkeypatch.setitem(
        registry.SOURCES, "odd", registry.Source("stamp.models.loaders.train", ("no-such-package",))
    )
    assert registry.versions("odd") == {"no-such-package": "not installed"}
