"""Commits in zoo files: from the real client and a hub on loopback, written without a word lost."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hub import LIBRARY, Hub
from project import ROOT

from stamp.__main__ import main
from stamp.cli.pin import pinned, places, repository
from stamp.config.zoo import read_zoo
from stamp.models.hub import is_commit, origins, unpinned

ZOO = """\
# A comment at the top.

plain:   # beside a key
  label: "Plain: one"
  family: F
  objective: O
  regime: R
  load:
    source: timm
    name: test_vit.r160_in1k   # beside the name
    preprocessing: {size: 160, channels: 3}

flow:
  label: Flow
  family: F
  objective: O
  regime: R
  load: {source: timm, name: test_vit.r160_in1k, preprocessing: {size: 160}}
start:
  label: Start
  family: F
  objective: O
  regime: R
  load:
    source: finetune
    arch: test_resnet
    initial: {timm: test_resnet.r160_in1k}  # where it starts
head:
  label: Head
  family: F
  objective: O
  regime: R
  load:
    source: probe
    backbone:
      hub: some/body
      hub_file: w.bin
      timm: resnet18
      mean: [0.5]
      std: [0.5]
# between entries
old:
  label: Old
  family: F
  objective: O
  regime: R
  load:
    source: checkpoint
    arch: resnet18
    hub: some/body
    hub_file: w.bin
    revision: "main"
elsewhere:
  label: Elsewhere
  family: F
  objective: O
  regime: R
  load: {source: checkpoint, arch: resnet18, url: "https://x.org/w.pth"}
# the last line"""


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with Hub(tmp_path_factory.mktemp("hub")) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config" / "zoo").mkdir(parents=True)
    (tmp_path / "config" / "config.yaml").write_text("studies: [s]\nseed: 0\n")
    (tmp_path / "config" / "zoo" / "small.yaml").write_text(ZOO)
    return tmp_path


def pin(folder: Path, endpoint: str, *arguments: str, **more: str) -> tuple[int, list[str]]:
    """The command in a process of its own: the client reads its settings when it is imported."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.lower().endswith("_proxy") and not key.startswith(("HF_", "HUGGING"))
    }
    environment = {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(folder / "hf"),
        "PYTHONPATH": str(LIBRARY),
    }
    done = subprocess.run(
        [sys.executable, "-m", "stamp", "pin", *arguments],
        cwd=folder,
        env={**kept, **environment, **more},
        text=True,
        capture_output=True,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_every_kind_of_entry_is_pinned_in_place_and_then_checks(hub: Hub, folder: Path) -> None:
    file = folder / "config" / "zoo" / "small.yaml"
    commits = {
        "vit": hub.push("timm/test_vit.r160_in1k", {"model.safetensors": b"1"}),
        "resnet": hub.push("timm/test_resnet.r160_in1k", {"pytorch_model.bin": b"2"}),
        "body": hub.push("some/body", {"w.bin": b"3"}),
    }
    assert pin(folder, hub.endpoint, "--check")[0] == 1
    assert file.read_text() == ZOO
    code, lines = pin(folder, hub.endpoint)
    assert (code, lines[-1]) == (0, "all pinned")
    text = file.read_text()
    expected = ZOO
    for old, new in (
        ("# beside the name\n", f"# beside the name\n    revision: {commits['vit']}\n"),
        (
            "preprocessing: {size: 160}}",
            f"preprocessing: {{size: 160}}, revision: {commits['vit']}}}",
        ),
        ("test_resnet.r160_in1k}", f"test_resnet.r160_in1k, revision: {commits['resnet']}}}"),
        (
            "hub_file: w.bin\n      timm",
            f"hub_file: w.bin\n      revision: {commits['body']}\n      timm",
        ),
        ('revision: "main"', f"revision: {commits['body']}"),
    ):
        assert expected.count(old) == 1
        expected = expected.replace(old, new)
    assert text == expected
    assert not any(unpinned(entry["load"]) for entry in read_zoo(file).values())
    assert pin(folder, hub.endpoint, "small", "--check") == (0, [*lines[:-1], "all pinned"])
    asked = len(hub.requests)
    assert pin(folder, hub.endpoint) == (0, ["all pinned"])
    assert len(hub.requests) == asked


def test_a_branch_is_pinned_and_a_commit_that_is_gone_is_found(hub: Hub, folder: Path) -> None:
    file = folder / "config" / "zoo" / "small.yaml"
    zoo = {"plain": yaml.safe_load(ZOO)["plain"]}
    file.write_text(yaml.safe_dump(zoo))
    hub.push("timm/test_vit.r160_in1k", {"model.safetensors": b"1"})
    later = hub.push("timm/test_vit.r160_in1k", {"model.safetensors": b"9"}, branch="later")
    assert pin(folder, hub.endpoint, "--revision", "later")[0] == 0
    assert read_zoo(file)["plain"]["load"]["revision"] == later
    zoo["plain"]["load"]["revision"] = "0" * 40
    file.write_text(yaml.safe_dump(zoo))
    code, lines = pin(folder, hub.endpoint, "--check")
    where = "config/zoo/small.yaml: plain: timm/test_vit.r160_in1k: "
    assert (code, lines) == (1, [f"{where}there is no revision '{'0' * 40}'", "1 not pinned"])


def test_what_the_hub_does_not_have_stays_as_it_was_and_the_rest_is_pinned(
    hub: Hub, folder: Path
) -> None:
    file = folder / "config" / "zoo" / "small.yaml"
    commit = hub.push("timm/test_vit.r160_in1k", {"model.safetensors": b"1"})
    hub.push("some/body", {"other.bin": b"3"})
    text = ZOO.replace("test_resnet.r160_in1k", "test_convnext.r160_in1k").replace(
        "some/body", "no/body"
    )
    file.write_text(text)
    code, lines = pin(folder, hub.endpoint)
    assert code == 1
    assert lines[-1] == "3 not pinned"
    assert sum("there is no such repository" in line for line in lines) == 3
    assert file.read_text().count(f"revision: {commit}") == 2
    assert (
        file.read_text()
        .replace(f"\n    revision: {commit}", "")
        .replace(f", revision: {commit}", "")
        == text
    )


def test_without_a_hub_the_file_is_left_alone_and_a_line_says_why(folder: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{free.getsockname()[1]}"
    code, lines = pin(folder, nowhere, HF_HUB_OFFLINE="1")
    assert code == 1
    assert "the hub's client is offline (HF_HUB_OFFLINE)" in lines[0]
    assert lines[1:] == ["the hub can't be reached: nothing further was looked up"]
    assert (folder / "config" / "zoo" / "small.yaml").read_text() == ZOO


def test_a_check_stops_at_the_first_connection_that_fails(folder: Path) -> None:
    """The client tries each place for some seconds: it must not do so for eighty of them."""
    zoo = {"plain": yaml.safe_load(ZOO)["plain"]}
    zoo["plain"]["load"]["revision"] = "0" * 40
    zoo |= {f"later{number}": zoo["plain"] for number in range(3)}
    for name in ("small", "zoo_after_it"):
        (folder / "config" / "zoo" / f"{name}.yaml").write_text(yaml.safe_dump(zoo))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{free.getsockname()[1]}"
    code, lines = pin(folder, nowhere, "--check")
    assert code == 1
    assert lines[0].startswith("config/zoo/small.yaml: later0: timm/test_vit.r160_in1k: the conn")
    assert lines[1:] == ["the hub can't be reached: nothing further was looked up"]


def test_an_unknown_zoo_is_suggested(folder: Path) -> None:
    code, lines = pin(folder, "http://127.0.0.1:9", "smal")
    assert code == 1
    assert lines == ["stamp: unknown zoo 'smal' (no config/zoo/smal.yaml): did you mean 'small'?"]


def test_a_folder_without_zoos_is_not_called_pinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["pin"]) == 1
    assert capsys.readouterr().err == "stamp: no zoo file in config/zoo\n"


@pytest.mark.parametrize("name", ["natural", "medical"])
def test_the_shipped_zoos_can_be_edited_in_place(name: str) -> None:
    """Every place of the paper's zoos gets a revision, and no other line of the file changes."""
    file = ROOT / "config" / "zoo" / f"{name}.yaml"
    text, found = file.read_text(), places(read_zoo(file))
    assert len(found) > 25
    commit = "f" * 40
    edited = pinned(text, dict.fromkeys(found, commit))
    assert edited.count(commit) == len(found)
    entries = yaml.safe_load(edited)
    assert all(
        origin.revision == commit for one in entries.values() for origin in origins(one["load"])
    )
    before, after = text.splitlines(), edited.splitlines()
    comments = [line for line in before if line.startswith("#")]
    assert comments == [line for line in after if line.startswith("#")]


def test_the_shipped_zoos_are_pinned_to_the_commits_that_the_page_lists() -> None:
    page = (ROOT / "resources" / "pins.md").read_text()
    revisions: dict[str, set[str | None]] = {}
    for name in ("natural", "medical"):
        for place in places(read_zoo(ROOT / "config" / "zoo" / f"{name}.yaml")):
            repo, _ = repository(place.origin)
            revisions.setdefault(repo, set()).add(place.origin.revision)
    assert all(len(found) == 1 for found in revisions.values())
    pinned_ones = {repo: found.pop() for repo, found in revisions.items()}
    assert [repo for repo, found in pinned_ones.items() if found is None] == [
        "timm/mvitv2_tiny.fb_in1k"
    ]
    listed = {line for line in page.splitlines() if line.startswith("| `")}
    assert len(listed) == len(pinned_ones)
    for repo, found in pinned_ones.items():
        start = f"| `{repo}` | " + (f"`{found}` |" if found else "none")
        assert any(line.startswith(start) for line in listed), repo


def test_only_a_commit_or_its_first_digits_pin() -> None:
    assert all(map(is_commit, ["0123456789abcdef" * 2 + "01234567", "abcdef0"]))
    others = [None, "", "main", "v1.0", "abcdef", "F" * 40, "a" * 41]
    assert not any(map(is_commit, others))
