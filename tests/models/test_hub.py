"""Weights from the hub, with its real client: pinned, retried, whole, shared, and offline."""

from __future__ import annotations

import io
import shutil
import socket
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch
from hub import Client, Hub, digest
from safetensors.torch import save

from stamp.core.errors import UserError
from stamp.models.loaders.registry import load_model
from stamp.models.torchvision_ops import timm
from stamp.models.weights import hub_record

TINY = timm.list_models("test_*", pretrained=True)
TAG = "test_vit.r160_in1k"
REPO = f"timm/{TAG}"
SAFE, PICKLED = "model.safetensors", "pytorch_model.bin"


def network(tag: str, seed: int = 0, **arguments: Any) -> dict[str, torch.Tensor]:
    """The weights of a network as if they had been trained: nothing is 0 or 1."""
    generator = torch.Generator().manual_seed(seed)
    state = timm.create_model(tag, pretrained=False, **arguments).state_dict()
    for tensor in state.values():
        if tensor.is_floating_point():
            tensor.copy_(torch.rand(tensor.shape, generator=generator))
    return dict(state)


def block(tag: str = TAG, **more: Any) -> dict[str, Any]:
    return {"source": "timm", "name": tag, "preprocessing": {"size": 160, "channels": 3}, **more}


FIRST, SECOND = network(TAG, 1), network(TAG, 2)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with Hub(tmp_path_factory.mktemp("hub")) as server:
        yield server


@pytest.fixture(scope="module")
def process(hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with Client(hub.endpoint, tmp_path_factory.mktemp("home")) as client:
        yield client


@pytest.fixture
def client(hub: Hub, process: Client) -> Client:
    """The client with an empty cache, before a hub without faults."""
    shutil.rmtree(process.home / "hub", ignore_errors=True)
    hub.forget()
    return process


@pytest.fixture
def main(hub: Hub) -> str:
    """The commit of the first weights, which main points to."""
    return hub.push(REPO, {SAFE: save(FIRST)})


def test_a_pinned_revision_gives_its_weights_whatever_main_is(
    hub: Hub, client: Client, main: str
) -> None:
    later = hub.push(REPO, {SAFE: save(SECOND)})
    pinned, newest = client.load(block(revision=main)), client.load(block(revision=later))
    assert pinned["digest"] == digest(FIRST)
    assert newest["digest"] == digest(SECOND)
    assert pinned["origin"]["revision"] == main != later == newest["origin"]["revision"]
    assert {key: pinned["origin"][key] for key in ("hub", "hub_file")} == {
        "hub": REPO,
        "hub_file": SAFE,
    }
    asked = len(hub.requests)
    assert client.load(block(revision=main)) == pinned
    assert len(hub.requests) == asked


def test_the_first_digits_of_a_commit_are_that_commit(
    hub: Hub, client: Client, process: Client, main: str
) -> None:
    hub.push(REPO, {SAFE: save(SECOND)})
    found = client.load(block(revision=main[:7]))
    assert found["digest"] == digest(FIRST) and found["origin"]["revision"] == main
    asked = len(hub.requests)
    assert client.load(block(revision=main[:12])) == found  # the cache knows it
    assert len(hub.requests) == asked
    other = "0" * 7 if not main.startswith("0" * 7) else "1" * 7
    line = client.load(block(revision=other))["error"]
    assert line.endswith(f"can't be had from the hub: there is no revision '{other}'")


def test_main_is_resolved_once_and_its_commit_is_told(hub: Hub, client: Client, main: str) -> None:
    found = client.load(block())
    hub.push(REPO, {SAFE: save(SECOND)})
    assert client.load(block()) == found
    assert found["origin"]["revision"] == main
    assert client.load(block(revision=found["origin"]["revision"])) == found


@pytest.mark.parametrize("tag", TINY)
def test_every_tiny_model_has_the_weights_that_were_published(
    hub: Hub, client: Client, tag: str
) -> None:
    state = network(tag)
    hub.push(f"timm/{tag}", {SAFE: save(state)})
    assert client.load(block(tag))["digest"] == digest(state)


def test_weights_of_another_framework_at_the_tags_url_are_plain_in_the_hub(
    hub: Hub, client: Client
) -> None:
    tag, small = "vit_tiny_patch16_224.augreg_in21k_ft_in1k", {"depth": 1}
    assert timm.models.get_pretrained_cfg_value(tag, "custom_load")
    state = network(tag, **small)
    hub.push(f"timm/{tag}", {SAFE: save(state)})
    found = client.load(block(tag, args=small, preprocessing={"size": 224, "channels": 3}))
    assert found["digest"] == digest(state)


def test_positions_are_resampled_as_timm_does(hub: Hub, client: Client, tmp_path: Path) -> None:
    hub.push(REPO, {SAFE: save(FIRST)})
    found = client.load(block(preprocessing={"size": 96, "channels": 3}))
    file = tmp_path / SAFE
    file.write_bytes(save(FIRST))
    by_timm = timm.create_model(
        TAG, pretrained=True, pretrained_cfg_overlay={"file": str(file)}, img_size=96
    )
    assert found["digest"] == digest(by_timm.state_dict()) != digest(FIRST)
    here = load_model(
        block(file=str(file), preprocessing={"size": 96, "channels": 3}), ["c"] * 1000, None
    )
    assert digest(here.module.state_dict()) == found["digest"]
    assert here.origin == {}


def test_a_repository_without_safetensors_gives_its_pickle_if_that_is_weights_only(
    hub: Hub, client: Client
) -> None:
    def pickled(content: Any) -> bytes:
        file = io.BytesIO()
        torch.save(content, file)
        return file.getvalue()

    good = hub.push(REPO, {PICKLED: pickled(FIRST)}, branch="pickled")
    bad = hub.push(REPO, {PICKLED: pickled({**FIRST, "trap": Path})}, branch="bad")
    found = client.load(block(revision=good))
    assert found["digest"] == digest(FIRST)
    assert found["origin"]["hub_file"] == PICKLED
    assert client.load(block(revision=good)) == found
    line = client.load(block(revision=bad))["error"]
    assert f"{PICKLED}: can't be read as weights of '{TAG}'" in line
    assert "\n" not in line


def test_a_large_file_comes_from_the_host_that_the_hub_sends_to(hub: Hub, client: Client) -> None:
    commit = hub.push(REPO, {SAFE: save(SECOND)}, branch="large", linked=True)
    found = client.load(block(revision="large"))
    (served,) = (one for one in hub.requests if one.sent)
    etag = sha256(save(SECOND)).hexdigest()
    assert found["digest"] == digest(SECOND)
    assert found["origin"] == {"hub": REPO, "hub_file": SAFE, "revision": commit, "etag": etag}
    assert (served.path, served.headers["Host"]) == (f"/cdn/{etag}", f"localhost:{hub.port}")


def test_a_connection_cut_within_the_file_is_taken_up_again(hub: Hub, client: Client) -> None:
    tag, wide = TAG, {"embed_dim": 256, "num_heads": 4}
    state = network(tag, **wide)
    content = save(state)
    hub.push(f"timm/{tag}", {SAFE: content})
    hub.cut(after=len(content) * 3 // 4, times=1)
    assert client.load(block(tag, args=wide))["digest"] == digest(state)
    first, second = (one for one in hub.requests if one.sent)
    assert (first.status, second.status) == (200, 206)
    assert second.sent < len(content)
    assert len(client.cached()) == 2


def test_a_small_file_that_is_cut_is_fetched_again(hub: Hub, client: Client, main: str) -> None:
    hub.cut(after=100_000, times=2)
    assert client.load(block())["digest"] == digest(FIRST)
    assert hub.bodies() == 3


def test_a_hub_that_is_busy_for_a_while_is_waited_for(hub: Hub, client: Client, main: str) -> None:
    hub.busy(9)
    assert client.load(block())["digest"] == digest(FIRST)
    assert [one.status for one in hub.requests].count(503) == 9


def test_content_that_is_not_what_was_announced_is_fetched_again(
    hub: Hub, client: Client, main: str
) -> None:
    hub.garble(1)
    assert client.load(block())["digest"] == digest(FIRST)
    assert hub.bodies() == 2


@pytest.mark.parametrize("fault", ["cut", "busy", "garble"])
def test_a_download_that_never_works_leaves_nothing_that_is_used_later(
    hub: Hub, client: Client, main: str, fault: str
) -> None:
    settings = {"cut": {"after": 0, "times": 999}, "busy": {"times": 999}, "garble": {"times": 999}}
    getattr(hub, fault)(**settings[fault])
    line = client.load(block())["error"]
    start = f"weights of '{TAG}': '{SAFE}' or '{PICKLED}' of '{REPO}' can't be had from the hub: "
    why = {
        "cut": "the connection failed (",
        "busy": "the hub answers with status 503",
        "garble": "what arrived is not what the hub announced",
    }
    assert line.startswith(start + why[fault])
    assert "\n" not in line
    assert client.cached() == []
    hub.forget()
    assert client.load(block())["digest"] == digest(FIRST)


@pytest.mark.parametrize(
    ("revision", "line"),
    [
        ("0" * 40, f"there is no revision '{'0' * 40}'"),
        ("empty", "there is no such file at revision 'empty'"),
    ],
)
def test_a_revision_or_file_that_is_not_there_is_named(
    hub: Hub, client: Client, main: str, revision: str, line: str
) -> None:
    hub.push(REPO, {"README.md": b"nothing"}, branch="empty")
    found = client.load(block(revision=revision))["error"]
    assert found.endswith(f"'{REPO}' can't be had from the hub: {line}")
    assert client.load(block(revision=main))["digest"] == digest(FIRST)


def test_a_repository_that_is_not_there_or_not_open_is_named(hub: Hub, client: Client) -> None:
    line = client.load(block("test_resnet.r160_in1k", hub="no/where"))["error"]
    assert "of 'no/where' can't be had from the hub: there is no such repository" in line
    hub.gated.add("some/body")
    line = client.load(block("test_resnet.r160_in1k", hub="some/body"))["error"]
    assert "access has to be granted first" in line


def test_a_digest_pins_the_file(hub: Hub, client: Client, main: str) -> None:
    found = client.load(block())["origin"]["etag"]
    assert client.load(block(sha256=found))["digest"] == digest(FIRST)
    line = client.load(block(sha256="0" * 64))["error"]
    assert line.endswith(f"its sha256 is {found}, but {'0' * 64} is expected")


def test_offline_the_cache_is_used_and_what_it_lacks_is_one_line(
    hub: Hub, client: Client, main: str
) -> None:
    later = hub.push(REPO, {SAFE: save(SECOND)}, branch="later")
    online = client.load(block())
    asked = len(hub.requests)
    with Client(hub.endpoint, client.home, HF_HUB_OFFLINE="1") as offline:
        assert offline.load(block()) == online
        assert offline.load(block(revision=main)) == online
        for lacking in (block(revision=later), block("test_resnet.r160_in1k")):
            line = offline.load(lacking)["error"]
            assert line.endswith(
                "it is not in the cache, and the hub's client is offline (HF_HUB_OFFLINE)"
            )
        offline.ask(backbone={"timm": "test_resnet.r160_in1k"})
        assert "the hub's client is offline" in offline.answer()["error"]
    assert len(hub.requests) == asked


def test_without_a_network_the_cache_is_used_and_what_it_lacks_is_one_line(
    hub: Hub, client: Client, main: str
) -> None:
    online = client.load(block())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{free.getsockname()[1]}"
    with Client(nowhere, client.home) as lonely:
        assert lonely.load(block()) == online
        line = lonely.load(block("test_resnet.r160_in1k"))["error"]
    assert "can't be had from the hub: the connection failed (" in line
    assert "\n" not in line


def test_two_processes_that_want_the_same_file_get_it_whole_and_once(
    hub: Hub, client: Client, main: str
) -> None:
    with Client(hub.endpoint, client.home) as other:
        other.load(block("test_none"))  # it has started when it has answered
        hub.delay = 0.005
        for one in (client, other):
            one.ask(block=block(), classes=1000)
        found = [one.answer() for one in (client, other)]
        hub.delay = 0.0
    assert [each["digest"] for each in found] == [digest(FIRST)] * 2
    assert hub.bodies() == 1


def test_a_backbone_from_the_hub_outlasts_a_busy_hub_too(hub: Hub, client: Client) -> None:
    tag = "test_resnet.r160_in1k"
    state = network(tag)
    hub.push(f"timm/{tag}", {SAFE: save(state)})
    hub.busy(9)
    client.ask(backbone={"timm": tag})
    body = {name: tensor for name, tensor in state.items() if not name.startswith("fc.")}
    assert client.answer()["digest"] == digest(body)


@pytest.mark.parametrize("kind", ["finetune", "probe"])
def test_the_weights_that_training_starts_from_are_pinned_by_a_revision(
    hub: Hub, client: Client, kind: str
) -> None:
    tag = "test_resnet.r160_in1k"
    states = [network(tag, seed) for seed in (1, 2)]
    first, later = (hub.push(f"timm/{tag}", {SAFE: save(state)}) for state in states)
    for commit, state in zip((first, later), states, strict=True):
        client.ask(start=kind, settings={"timm": tag, "revision": commit})
        found = client.answer()
        body = {name: tensor for name, tensor in state.items() if not name.startswith("fc.")}
        assert found["digest"] == digest(body)
        assert found["origin"]["revision"] == commit
    client.ask(start=kind, settings={"timm": tag, "revision": "0" * 40})
    assert f"there is no revision '{'0' * 40}'" in client.answer()["error"]
    client.ask(start=kind, settings={"timm": tag, "file": "w.safetensors", "revision": first})
    assert client.answer()["error"] == "revision is of the hub, not of file"


def test_an_untrained_head_is_the_same_in_every_process_and_the_network_is_the_published_one(
    hub: Hub, client: Client
) -> None:
    tag, small = "vit_small_patch16_224.dino", {"depth": 1, "embed_dim": 48, "num_heads": 3}
    state = network(tag, **small)
    assert not any(name.startswith("head.") for name in state)
    content = save(state)
    hub.push(f"timm/{tag}", {SAFE: content})
    settings = block(tag, args=small, head="random", preprocessing={"size": 224, "channels": 3})
    there = client.load(settings, classes=10)
    file = client.home / "same.safetensors"
    file.write_bytes(content)
    torch.manual_seed(7)
    here = load_model({**settings, "file": str(file)}, ["c"] * 10, None)
    assert there["digest"] == digest(here.module.state_dict())
    module: Any = here.module
    head = module.get_classifier()
    assert head.weight.shape == (10, 48)
    assert head.weight.detach().std().item() == pytest.approx(0.02, rel=0.1)
    assert not head.bias.any()
    assert all(torch.equal(here.module.state_dict()[name], state[name]) for name in state)


@pytest.mark.parametrize(
    ("settings", "classes", "line"),
    [
        ({"name": "resnet5O.a1_in1k"}, 1000, "unknown architecture 'resnet5O': did you mean"),
        ({"name": "resnet50.a1_in1K"}, 1000, "unknown weights 'a1_in1K' of 'resnet50': did you"),
        ({}, 10, f"weights of '{TAG}' have 1000 outputs, but the study has 10 classes"),
        ({"name": "vit_base_patch16_224.mae"}, 1000, "have no classifier: `head: random` gives"),
        ({"prefix": "net."}, 1000, "prefix is for weights of file, url or hub"),
        ({"args": {"num_classes": 5}}, 1000, "num_classes is for weights of file, url or hub"),
        ({"file": "w.pth", "revision": "abc"}, 1000, "revision is of the hub, not of file or url"),
        ({"name": "resnet18d.fb_none"}, 1000, "unknown weights 'fb_none'"),
    ],
)
def test_a_block_that_can_not_be_meant_is_one_line_before_anything_is_fetched(
    settings: dict[str, Any], classes: int, line: str
) -> None:
    with pytest.raises(UserError) as caught:
        load_model({**block(), **settings}, ["c"] * classes, None)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_weights_of_another_width_are_one_line(hub: Hub, client: Client) -> None:
    commit = hub.push(REPO, {SAFE: save(network(TAG, num_classes=7))}, branch="seven")
    line = client.load(block(revision=commit))["error"]
    assert "size mismatch for head.weight" in line
    assert "\n" not in line


def test_a_file_outside_the_cache_has_no_origin(tmp_path: Path) -> None:
    assert hub_record(tmp_path / SAFE) == {}
    inside = tmp_path / "snapshots/x/hub/models--timm--a.b_c/snapshots/0123/sub/w.bin"
    assert hub_record(inside) == {"hub": "timm/a.b_c", "hub_file": "sub/w.bin", "revision": "0123"}
