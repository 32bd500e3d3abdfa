"""Archives are unpacked whole, inside their folder, or refused by name."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import stat
import tarfile
import zipfile
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from official.zip_crypto import encrypted_zip

from stamp.core.errors import UserError
from stamp.data import archives
from stamp.data.archives import unpack

RNG = np.random.default_rng([3, 2])
FILES = {
    "images/1.png": RNG.bytes(70_000),
    "images/deep/2.png": b"two" * 400,
    "empty.txt": b"",
    "lists/a.txt": bytes(range(256)) * 6,
}
TARS = {".tar": "w", ".tar.gz": "w:gz", ".tgz": "w:gz", ".tar.bz2": "w:bz2"}
ALL = (*TARS, ".zip")
Maker = Callable[[str, dict[str, bytes]], Path]


@pytest.fixture
def make(tmp_path: Path) -> Maker:
    """A function that makes an archive of an ending from names and contents."""

    def made(ending: str, files: dict[str, bytes]) -> Path:
        path = tmp_path / f"made{ending}"
        if ending == ".zip":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
                for name, content in files.items():
                    zipped.writestr(name, content)
            return path
        with tarfile.open(path, TARS[ending]) as tar:  # type: ignore[call-overload]
            for name, content in files.items():
                tar.addfile(entry(name, size=len(content)), io.BytesIO(content))
        return path

    return made


def entry(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0
) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size
    return info


def tar_of(path: Path, *entries: tarfile.TarInfo | tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as tar:
        for one in entries:
            info, content = one if isinstance(one, tuple) else (one, b"")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def zip_link(zipped: zipfile.ZipFile, name: str, target: str, mode: int = stat.S_IFLNK) -> None:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (mode | 0o777) << 16
    zipped.writestr(info, target)


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if not path.is_dir()
    }


def refused(archive: Path, folder: Path, **options: object) -> str:
    with pytest.raises(UserError) as caught:
        unpack(archive, folder, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("ending", ALL)
def test_every_kind_of_archive_comes_out_as_it_went_in(
    ending: str, make: Maker, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert unpack(make(ending, FILES), out) == list(FILES)
    assert content(out) == FILES


@pytest.mark.parametrize("ending", ALL)
def test_a_leading_folder_is_dropped_and_members_are_chosen_by_what_is_left(
    ending: str, make: Maker, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    files = {f"./top-1.0/{name}": data for name, data in FILES.items()} | {"README": b"r"}
    archive = make(ending, files)
    chosen = unpack(archive, out, strip="top-1.0/", members=lambda name: name.endswith(".png"))
    assert chosen == ["images/1.png", "images/deep/2.png"]
    assert content(out) == {name: FILES[name] for name in chosen}
    unpack(archive, out, strip="top-1.0")
    assert content(out) == FILES | {"README": b"r"}
    assert "no member lies in a folder 'top'" in refused(archive, out, strip="top")


def test_a_gzipped_file_loses_its_ending(tmp_path: Path) -> None:
    archive, out = tmp_path / "a.csv.gz", tmp_path / "out"
    archive.write_bytes(gzip.compress(b"x,y\n" * 1000))
    assert unpack(archive, out) == ["a.csv"]
    assert content(out) == {"a.csv": b"x,y\n" * 1000}
    assert unpack(archive, out, members=lambda name: False) == []


def test_a_gzipped_file_of_several_parts_is_one_file(tmp_path: Path) -> None:
    archive = tmp_path / "a.csv.gz"
    archive.write_bytes(gzip.compress(b"one") + gzip.compress(b"second"))
    unpack(archive, tmp_path / "out")
    assert (tmp_path / "out" / "a.csv").read_bytes() == b"onesecond"


@pytest.mark.parametrize("ending", [*ALL, ".csv.gz"])
def test_what_is_there_with_its_size_is_not_written_again(
    ending: str, make: Maker, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    if ending == ".csv.gz":
        archive = tmp_path / "made.csv.gz"
        archive.write_bytes(gzip.compress(b"x" * 999))
    else:
        archive = make(ending, FILES)
    names = unpack(archive, out)
    old = {name: (out / name).stat().st_ino for name in names}
    (out / names[0]).write_bytes(b"cut")
    assert unpack(archive, out) == names
    new = {name: (out / name).stat().st_ino for name in names}
    assert [name for name in names if old[name] != new[name]] == names[:1]
    assert (out / names[0]).stat().st_size > 3


@pytest.mark.parametrize("ending", ALL)
def test_of_two_members_with_one_name_the_last_counts(
    ending: str, make: Maker, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    archive = make(ending, {"a": b"old", "./a": b"new", "b": b"b"})
    for _ in range(2):
        assert unpack(archive, out) == ["a", "b"]
        assert content(out) == {"a": b"new", "b": b"b"}


BAD_NAMES = ["/etc/evil", "../evil", "a/../../evil", "a/..", "..\\evil", "C:\\evil", "\\evil"]


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize("ending", ALL)
def test_a_name_that_leads_out_is_refused_by_name(
    ending: str, name: str, make: Maker, tmp_path: Path
) -> None:
    out = tmp_path / "deep" / "out"
    archive = make(ending, {"good": b"g", name: b"evil", "later": b"l"})
    text = refused(archive, out)
    assert text.startswith(f"{archive}: member {name!r} ")
    assert not out.exists()
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize("ending", ALL)
def test_a_bad_name_is_refused_even_where_it_was_not_chosen(
    ending: str, make: Maker, tmp_path: Path
) -> None:
    archive = make(ending, {"good": b"g", "../evil": b"evil"})
    assert "'../evil'" in refused(archive, tmp_path / "out", members=lambda name: name == "good")


@pytest.mark.parametrize("ending", [".tar", ".tar.gz"])
@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
@pytest.mark.parametrize("link", ["/etc/passwd", "../secret", "../../secret", "x/../../secret"])
def test_a_tar_link_that_leads_out_is_refused(
    ending: str, kind: bytes, link: str, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("s")
    archive = tar_of(
        tmp_path / f"a{ending}", entry("link", kind, link), (entry("link/x"), b"through")
    )
    assert "member 'link' is a link that leads out" in refused(archive, tmp_path / "out")
    assert not list((tmp_path / "out").rglob("*"))


def test_a_member_behind_a_link_to_a_folder_does_not_get_out(tmp_path: Path) -> None:
    """A chain that is inside by its text alone: a/b -> . and a/b/c -> .."""
    archive = tar_of(
        tmp_path / "a.tar.gz",
        entry("a", tarfile.DIRTYPE),
        entry("a/b", tarfile.SYMTYPE, "."),
        entry("a/b/c", tarfile.SYMTYPE, ".."),
        (entry("a/b/c/evil"), b"evil"),
    )
    assert "is a link to no file of the archive" in refused(archive, tmp_path / "out")
    assert not list(tmp_path.rglob("evil"))


@pytest.mark.parametrize("ending", [".tar", ".tar.gz"])
def test_links_inside_a_tar_become_copies(ending: str, tmp_path: Path) -> None:
    archive = tar_of(
        tmp_path / f"a{ending}",
        entry("d/forward", tarfile.SYMTYPE, "../later"),
        (entry("d/file"), b"content"),
        entry("hard", tarfile.LNKTYPE, "d/file"),
        entry("d/soft", tarfile.SYMTYPE, "file"),
        entry("chain", tarfile.SYMTYPE, "d/soft"),
        (entry("later"), b"l"),
    )
    out = tmp_path / "out"
    names = unpack(archive, out)
    assert names == ["d/forward", "d/file", "hard", "d/soft", "chain", "later"]
    copies = dict.fromkeys(["chain", "d/file", "d/soft", "hard"], b"content")
    assert content(out) == copies | {"d/forward": b"l", "later": b"l"}
    for name in names:
        assert not (out / name).is_symlink()
        assert (out / name).stat().st_nlink == 1
    assert unpack(archive, out) == names


@pytest.mark.parametrize("link", ["nothing", "loop", "folder"])
@pytest.mark.parametrize("ending", [".tar", ".tar.gz"])
def test_a_link_to_no_file_is_refused(ending: str, link: str, tmp_path: Path) -> None:
    archive = tar_of(
        tmp_path / f"a{ending}",
        entry("folder", tarfile.DIRTYPE),
        entry("loop", tarfile.SYMTYPE, "other"),
        entry("other", tarfile.SYMTYPE, "loop"),
        entry("link", tarfile.SYMTYPE, link),
    )
    text = refused(archive, tmp_path / "out", members=lambda name: name == "link")
    assert "member 'link' is a link to no file" in text


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_a_device_is_refused(kind: bytes, tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "a.tar", (entry("good"), b"g"), entry("device", kind))
    assert "member 'device' is neither a file nor a folder" in refused(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_tar_gives_no_right_to_run_and_no_foreign_owner(tmp_path: Path) -> None:
    info = entry("run.sh")
    info.mode, info.uid = 0o6777, 12345
    unpack(tar_of(tmp_path / "a.tar", (info, b"#!")), tmp_path / "out")
    found = (tmp_path / "out" / "run.sh").stat()
    assert found.st_mode & 0o7111 == 0
    assert found.st_uid == os.getuid()


@pytest.mark.parametrize("target", ["/etc/passwd", "../secret", "a/../../secret"])
def test_a_zip_link_that_leads_out_is_refused(target: str, tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("good", "g")
        zip_link(zipped, "link", target)
    assert "member 'link' is a link that leads out" in refused(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_link_inside_a_zip_becomes_a_copy_and_a_device_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("d/good", "g")
        zip_link(zipped, "d/link", "good")
    unpack(archive, tmp_path / "out")
    assert content(tmp_path / "out") == {"d/good": b"g", "d/link": b"g"}
    with zipfile.ZipFile(archive, "a") as zipped:
        zip_link(zipped, "device", "", stat.S_IFCHR)
    assert "member 'device' is neither" in refused(archive, tmp_path / "other")


@pytest.mark.parametrize("ending", ALL)
@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_a_cut_archive_is_damaged_and_leaves_no_half_file(
    share: float, ending: str, make: Maker, tmp_path: Path
) -> None:
    archive, out = make(ending, FILES), tmp_path / "out"
    size = archive.stat().st_size
    os.truncate(archive, int(size * share))
    text = refused(archive, out)
    assert text.startswith(f"{archive}: damaged (")
    assert text.endswith("; delete it and run again")
    assert all(FILES[name] == data for name, data in content(out).items())


def test_a_tar_cut_between_two_members_is_damaged_too(tmp_path: Path) -> None:
    """``tarfile`` alone takes such a cut for the end of the archive."""
    archive = tar_of(tmp_path / "a.tar", (entry("a"), b"x" * 512), (entry("b"), b"y" * 512))
    for size in (1024, 1024 + 100):
        os.truncate(archive, size)
        assert "damaged" in refused(archive, tmp_path / "out")


def test_a_tar_with_a_spoiled_header_is_damaged(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "a.tar", (entry("a"), b"x" * 512), (entry("b"), b"y" * 512))
    data = bytearray(archive.read_bytes())
    data[1024 + 3] ^= 255
    archive.write_bytes(data)
    assert "damaged" in refused(archive, tmp_path / "out")


@pytest.mark.parametrize("ending", [".tar.gz", ".tar.bz2", ".csv.gz"])
def test_a_wrong_checksum_at_the_end_is_noticed(ending: str, make: Maker, tmp_path: Path) -> None:
    if ending == ".csv.gz":
        archive = tmp_path / "made.csv.gz"
        archive.write_bytes(gzip.compress(b"x" * 999))
    else:
        archive = make(ending, FILES)
    data = bytearray(archive.read_bytes())
    data[-7] ^= 255
    archive.write_bytes(data)
    assert "damaged" in refused(archive, tmp_path / "out")


@pytest.mark.parametrize("ending", [*ALL, ".gz"])
def test_a_web_page_is_no_archive(ending: str, tmp_path: Path) -> None:
    archive = tmp_path / f"page{ending}"
    archive.write_text("<html>please log in</html>")
    assert refused(archive, tmp_path / "out").startswith(f"{archive}: damaged (")


def test_what_is_no_archive_or_not_there_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.rar").touch()
    assert "unknown kind of archive; known: .tar, " in refused(tmp_path / "a.rar", tmp_path)
    assert refused(tmp_path / "b.zip", tmp_path) == f"{tmp_path / 'b.zip'}: no such file"


@pytest.mark.parametrize("ending", ALL)
def test_space_is_checked_for_what_is_missing(
    ending: str, make: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    usage = namedtuple("usage", "total used free")
    archive = make(ending, FILES)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, 50_000))
    text = refused(archive, out)
    needed = ("70.0 kB", "72.7 kB")  # the first member alone, or all of them
    assert text in [
        f"{archive.name}: needs {one}, 50.0 kB are free on {tmp_path}" for one in needed
    ]
    assert not out.exists()
    (out / "images").mkdir(parents=True)
    (out / "images/1.png").write_bytes(FILES["images/1.png"])
    unpack(archive, out)
    assert content(out) == FILES


@pytest.mark.parametrize("ending", [".zip", ".tar.gz", ".tgz", ".tar.bz2", ".csv.gz"])
def test_a_bomb_is_refused_before_anything_is_written(
    ending: str, make: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zeros pack a thousand times smaller than they are."""
    zeros = bytes(40 << 20)
    if ending == ".csv.gz":
        archive = tmp_path / "made.csv.gz"
        archive.write_bytes(gzip.compress(zeros))
    else:
        archive = make(ending, {"small": b"s", "zeros": zeros})
    assert archive.stat().st_size < 100_000
    out, usage = tmp_path / "out", namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, 5 << 20))
    text = refused(archive, out)
    assert text.startswith(f"{archive.name}: needs ")
    assert text.endswith(f" MB, 5.2 MB are free on {tmp_path}")
    assert not out.exists()


def test_a_folder_in_the_way_of_a_file_is_one_line(make: Maker, tmp_path: Path) -> None:
    (tmp_path / "out" / "empty.txt").mkdir(parents=True)
    assert "empty.txt: " in refused(make(".zip", FILES), tmp_path / "out")


def test_a_zip_with_a_password_opens_with_it_only(tmp_path: Path) -> None:
    files = {"a/1.txt": b"hidden" * 50, "b": b"x"}
    archive = encrypted_zip(tmp_path / "a.zip", files, b"objectnet")
    assert "member 'a/1.txt' needs a password" in refused(archive, tmp_path / "out")
    assert "has another password" in refused(archive, tmp_path / "out", password="x")
    unpack(archive, tmp_path / "out", password="objectnet")
    assert content(tmp_path / "out") == files


def test_a_password_for_a_tar_is_a_mistake(make: Maker, tmp_path: Path) -> None:
    assert "only a .zip takes a password" in refused(
        make(".tar", FILES), tmp_path / "out", password="x"
    )


@pytest.mark.parametrize("ending", ALL)
@given(data=st.data())
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_an_archive_with_any_bytes_spoiled_is_unpacked_or_refused(
    ending: str, make: Maker, tmp_path: Path, data: st.DataObject
) -> None:
    whole = bytearray(make(ending, {"a/b": b"abc" * 300, "c": b"d"}).read_bytes())
    places = st.integers(0, len(whole) - 1)
    for place, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=4)):
        whole[place] = byte
    archive, out = tmp_path / f"spoiled{ending}", tmp_path / "fuzz" / "out"
    archive.write_bytes(whole)
    shutil.rmtree(tmp_path / "fuzz", ignore_errors=True)
    try:
        names = unpack(archive, out)
    except UserError as error:
        assert "\n" not in str(error)
    else:
        assert sorted(names) == sorted(content(out))
    assert {path.name for path in (tmp_path / "fuzz").glob("*")} <= {"out"}


def test_the_known_endings_are_those_that_are_tested() -> None:
    assert set(archives.ENDINGS) == {*ALL, ".gz"}
