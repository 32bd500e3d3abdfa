"""A data set's folder: downloads, unpacked archives, credentials that go where they belong."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from naming import check_named
from servers import Server

from stamp.core.errors import UserError
from stamp.data import download as collection


@pytest.fixture
def served(tmp_path: Path) -> Path:
    folder = tmp_path / "served"
    (folder / "images").mkdir(parents=True)
    for number in range(5):
        (folder / "images" / f"{number}.png").write_bytes(bytes([number]) * 100)
    (folder / "table.csv").write_text("a,b\n1,2\n")
    with tarfile.open(folder / "images.tar", "w") as archive:
        archive.add(folder / "images", arcname="images")
    return folder


def test_an_archive_is_unpacked_removed_and_not_asked_for_again(
    served: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    with Server(served) as server:
        remote = {"name": "images.tar", "url": server.url("images.tar"), "unpack": True}
        record = collection.obtain(remote, "open", root)
        assert record["count"] == 5
        assert sorted(path.name for path in (root / "images").iterdir()) == [
            f"{number}.png" for number in range(5)
        ]
        assert not list(root.rglob("*.tar"))
        asked = len(server.requests)
        assert collection.obtain(remote, "open", root) == record
        assert len(server.requests) == asked
        (root / "images" / "3.png").unlink()
        collection.obtain(remote, "open", root)
        assert (root / "images" / "3.png").is_file() and len(server.requests) > asked


def test_missing_images_are_fetched_where_they_may_be(served: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "images").mkdir(parents=True)
    (root / "images" / "0.png").write_bytes(b"mine")
    paths = [str(root / "images" / f"{number}.png") for number in range(5)]
    with Server(served) as server:
        found = collection.complete("d", paths, root, server.url(""), "open", "help")
    assert (found["images"], found["fetched"]) == (5, 4)
    assert (root / "images" / "0.png").read_bytes() == b"mine"
    assert (root / "images" / "4.png").read_bytes() == bytes([4]) * 100


def test_missing_images_that_may_not_be_fetched_come_with_instructions(tmp_path: Path) -> None:
    paths = [str(tmp_path / "images" / name) for name in ("a.png", "b.png")]
    with pytest.raises(UserError) as caught:
        collection.complete("d", paths, tmp_path, None, "form", "fill in the form")
    what = ("data set 'd'", "2 of 2", tmp_path, "images/a.png", "fill in the form")
    check_named(str(caught.value), *what)


def test_absent_paths_are_found_however_folders_alternate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection, "FOLDERS", 2)
    paths = [str(tmp_path / f"f{k % 5}" / f"{k}.png") for k in range(40)]
    for path in paths[::3]:
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).touch()
    assert collection.absent(paths) == [p for k, p in enumerate(paths) if k % 3]


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("https://www.kaggle.com/api/v1/x", True),
        ("https://kaggle.com/x", True),
        ("https://evilkaggle.com/x", False),
        ("https://kaggle.com.evil.org/x", False),
        ("https://s3.amazonaws.com/x", False),
    ],
)
def test_a_kaggle_key_goes_to_kaggle_alone(
    url: str, sent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAGGLE_USERNAME", "user")
    monkeypatch.setenv("KAGGLE_KEY", "key")
    assert collection.sign_in("kaggle", url) == (("user", "key") if sent else None)


def test_absent_credentials_say_where_they_belong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KAGGLE_USERNAME", "KAGGLE_KEY", "KAGGLE_CONFIG_DIR", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UserError, match=r"machine physionet\.org login <user>"):
        collection.sign_in("physionet", "https://physionet.org/files/x")
    with pytest.raises(UserError, match=r"kaggle\.json"):
        collection.sign_in("kaggle", "https://www.kaggle.com/x")
