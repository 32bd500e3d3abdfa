"""Downloads against a real server: they resume, retry, verify, and give no secret away."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import namedtuple
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naming import check_named
from servers import Server

from stamp.core.errors import UserError
from stamp.data.transfer import disk, ledger
from stamp.data.transfer import fetch as downloads
from stamp.data.transfer.ledger import LEDGER
from stamp.data.transfer.part import Part
from stamp.data.transfer.remote import Remote

SIZE = 300_000
CONTENT = np.random.default_rng([3, 1]).bytes(SIZE)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
MD5 = hashlib.md5(CONTENT).hexdigest()
USER, KEY = "who-am-i", "s3cr3t/käy"
TOKEN = "signature-0123456789"
QUICK: dict[str, Any] = {"pause": 0.001, "timeout": 5.0}
LIBRARY = str(Path(downloads.__file__).parents[3])


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No proxy to the loopback interface, and nobody's own netrc."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A folder to serve."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    (folder / "a.zip").write_bytes(CONTENT)
    return folder


@pytest.fixture
def server(shelf: Path) -> Iterator[Server]:
    with Server(shelf) as running:
        yield running


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path / "here"


def fetch(
    remote: Remote,
    folder: Path,
    auth: tuple[str, str] | None = None,
    quiet: bool = False,
    **patience: Any,
) -> Path:
    return downloads.fetch(remote, folder, auth, downloads.Patience(**patience), quiet)


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def refused(remote: Remote, folder: Path, **options: Any) -> str:
    """The one line of a download that fails, after checking that no secret is in its traceback."""
    with pytest.raises(UserError) as caught:
        fetch(remote, folder, **{**QUICK, **options})
    trace = "".join(traceback.format_exception(caught.value))
    assert not any(secret in trace for secret in (KEY, TOKEN))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_file_arrives_whole_and_verified(server: Server, here: Path) -> None:
    remote = Remote(server.url("a.zip"), "deep/b.zip", sha256=SHA256.upper(), md5=MD5, size=SIZE)
    path = fetch(remote, here, **QUICK)
    assert path == here / "deep" / "b.zip"
    assert path.read_bytes() == CONTENT
    assert visible(here / "deep") == ["b.zip"]
    assert server.requests[0].headers["User-Agent"].startswith("stamp-ood/")


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "", ".", "a\0b"])
def test_a_name_that_leaves_the_folder_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="relative path"):
        Remote("https://h.org/x", name)


@pytest.mark.parametrize("kind", ["sha256", "md5"])
def test_a_checksum_that_is_none_is_refused_by_name(kind: str) -> None:
    with pytest.raises(UserError, match=f"x.zip: {kind} is not"):
        Remote("https://h.org/x", "x.zip", **{kind: "abc"})  # type: ignore[arg-type]


def test_after_a_cut_only_the_missing_bytes_are_asked_for(server: Server, here: Path) -> None:
    server.cut(after=100_000, times=1)
    fetch(Remote(server.url("a.zip"), "a.zip", sha256=SHA256), here, **QUICK)
    first, second = server.requests
    assert (first.range, second.range) == (None, "bytes=100000-")
    assert second.headers["If-Range"].startswith('"')
    assert (first.sent, second.sent) == (100_000, SIZE - 100_000)
    assert (here / "a.zip").read_bytes() == CONTENT


def test_attempts_that_bring_new_bytes_are_not_counted(server: Server, here: Path) -> None:
    server.cut(after=20_000, times=10)
    fetch(Remote(server.url("a.zip"), "a.zip", sha256=SHA256), here, attempts=2, **QUICK)
    assert len(server.requests) == 11
    assert server.sent == SIZE


def test_attempts_without_new_bytes_are_counted(server: Server, here: Path) -> None:
    server.cut(after=0, times=100)
    text = refused(Remote(server.url("a.zip"), "a.zip"), here, attempts=3)
    assert "the connection was cut" in text and "(3 attempts)" in text
    assert len(server.requests) == 3


def test_starting_over_again_and_again_comes_to_an_end(server: Server, here: Path) -> None:
    server.ranges = False
    server.cut(after=100_000, times=100)
    refused(Remote(server.url("a.zip"), "a.zip"), here, attempts=3)
    assert len(server.requests) == 4


def test_a_later_run_goes_on_where_an_earlier_one_gave_up(server: Server, here: Path) -> None:
    remote = Remote(server.url("a.zip"), "a.zip", sha256=SHA256)
    server.cut(after=70_000, times=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(downloads.tenacity.nap, "sleep", lambda _: server.busy(times=9))
        assert "HTTP 503" in refused(remote, here, attempts=1)
    server.busy(times=0)
    assert visible(here) == ["a.zip.part", "a.zip.part.json"]
    fetch(remote, here, **QUICK)
    assert server.requests[-1].range == "bytes=70000-"
    assert (here / "a.zip").read_bytes() == CONTENT
    assert visible(here) == ["a.zip"]


def test_a_server_that_continues_in_small_pieces_is_asked_for_each(
    server: Server, here: Path
) -> None:
    server.cut(after=100_000)
    server.most = 60_000
    fetch(Remote(server.url("a.zip"), "a.zip", sha256=SHA256), here, attempts=1, **QUICK)
    starts = [100_000, 160_000, 220_000, 280_000]
    assert [one.range for one in server.requests] == [None, *(f"bytes={k}-" for k in starts)]


@pytest.mark.parametrize("validators", [{"etag": "weak"}, {"etag": False}])
def test_without_a_strong_etag_the_date_tells_versions_apart(
    validators: dict[str, Any], shelf: Path, here: Path
) -> None:
    with Server(shelf, **validators) as server:
        server.cut(after=100_000)
        fetch(Remote(server.url("a.zip"), "a.zip"), here, **QUICK)
        assert server.requests[1].headers["If-Range"].endswith("GMT")
        assert server.sent == SIZE
    assert (here / "a.zip").read_bytes() == CONTENT


@pytest.mark.parametrize("digest", [SHA256, None])
def test_without_any_validator_only_a_checksum_allows_to_continue(
    digest: str | None, shelf: Path, here: Path
) -> None:
    with Server(shelf, etag=False, modified=False) as server:
        server.cut(after=100_000)
        fetch(Remote(server.url("a.zip"), "a.zip", sha256=digest), here, **QUICK)
        assert server.requests[1].range == ("bytes=100000-" if digest else None)
    assert (here / "a.zip").read_bytes() == CONTENT


@pytest.mark.parametrize("length", [True, False])
def test_a_file_that_changes_between_attempts_is_fetched_anew(
    length: bool, shelf: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = CONTENT[::-1]
    with Server(shelf, length=length) as server:
        server.cut(after=100_000)

        def change(_: float) -> None:
            (shelf / "a.zip").write_bytes(other)
            server.edition += 1

        monkeypatch.setattr(downloads.tenacity.nap, "sleep", change)
        fetch(Remote(server.url("a.zip"), "a.zip"), here, **QUICK)
        assert [one.status for one in server.requests] == [200, 200]
    assert (here / "a.zip").read_bytes() == other


def test_a_server_that_continues_another_version_is_not_believed(
    server: Server, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some servers obey Range and disregard If-Range: the answer's own ETag decides."""
    monkeypatch.setattr(Part, "request", lambda part: range_only(part))
    server.cut(after=100_000)
    monkeypatch.setattr(downloads.tenacity.nap, "sleep", lambda _: edit(server))
    fetch(Remote(server.url("a.zip"), "a.zip"), here, **QUICK)
    assert [one.status for one in server.requests] == [200, 206, 200]
    assert (here / "a.zip").read_bytes() == CONTENT


def range_only(part: Part) -> dict[str, str]:
    return {"Range": f"bytes={part.size}-"} if part.size else {}


def edit(server: Server) -> None:
    server.edition = 1


def test_parts_of_another_url_are_not_continued(server: Server, shelf: Path, here: Path) -> None:
    shutil.copy(shelf / "a.zip", shelf / "b.zip")
    here.mkdir()
    (here / "x.zip.part").write_bytes(b"other")
    source = Remote(server.url("b.zip"), "x.zip").source
    record = {"source": source, "etag": '"1"', "modified": None, "total": SIZE}
    (here / "x.zip.part.json").write_text(json.dumps(record))
    fetch(Remote(server.url("a.zip"), "x.zip"), here, **QUICK)
    assert server.requests[0].range is None
    assert (here / "x.zip").read_bytes() == CONTENT


def test_a_whole_part_is_finished_without_another_byte(server: Server, here: Path) -> None:
    remote = Remote(server.url("a.zip"), "a.zip", sha256=SHA256)
    here.mkdir()
    (here / "a.zip.part").write_bytes(CONTENT)
    with Server(server.folder) as twin:  # tells what this server's validators are
        fetch(Remote(twin.url("a.zip"), "b.zip"), here, **QUICK)
    found = (server.folder / "a.zip").stat()
    record = {
        "source": remote.source,
        "etag": f'"{found.st_mtime_ns:x}-{found.st_size:x}-0"',
        "modified": formatdate(found.st_mtime, usegmt=True),
        "total": SIZE,
    }
    (here / "a.zip.part.json").write_text(json.dumps(record))
    fetch(remote, here, **QUICK)
    assert [one.status for one in server.requests] == [416]
    assert server.sent == 0
    assert visible(here) == ["a.zip", "b.zip"]


def test_a_part_longer_than_the_file_is_thrown_away(server: Server, here: Path) -> None:
    remote = Remote(server.url("a.zip"), "a.zip", sha256=SHA256)
    here.mkdir()
    (here / "a.zip.part").write_bytes(CONTENT + b"more")
    record = {"source": remote.source, "etag": None, "modified": None, "total": SIZE}
    (here / "a.zip.part.json").write_text(json.dumps(record))
    fetch(remote, here, **QUICK)
    assert [one.status for one in server.requests] == [416, 200]
    assert (here / "a.zip").read_bytes() == CONTENT


SCRIPT = """
import sys
from pathlib import Path
from stamp.data.transfer.fetch import Patience, fetch
from stamp.data.transfer.remote import Remote
remote = Remote(sys.argv[1], "a.zip", sha256=sys.argv[2])
fetch(remote, Path(sys.argv[3]), patience=Patience(pause=0.01, timeout=20))
"""


def start(server: Server, here: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", SCRIPT, server.url("a.zip"), SHA256, str(here)]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": LIBRARY})


def test_a_killed_download_is_continued_by_the_next_process(server: Server, here: Path) -> None:
    server.delay = 0.02
    first = start(server, here)
    part = here / "a.zip.part"
    while not (part.is_file() and part.stat().st_size > 60_000):
        assert first.poll() is None, "it ended before it could be killed"
        time.sleep(0.005)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert not (here / "a.zip").exists()
    there = part.stat().st_size
    assert there < SIZE
    server.delay = 0.0
    assert start(server, here).wait() == 0
    assert hashlib.sha256((here / "a.zip").read_bytes()).hexdigest() == SHA256
    assert server.requests[-1].range == f"bytes={there}-"
    assert server.requests[-1].sent == SIZE - there
    assert server.sent < 2 * SIZE


def test_a_busy_server_is_waited_for_as_long_as_it_asks(
    server: Server, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(downloads.tenacity.nap, "sleep", slept.append)
    server.busy(times=2, retry_after="7")
    fetch(Remote(server.url("a.zip"), "a.zip"), here, **QUICK)
    server.busy(times=1, status=429, retry_after=formatdate(time.time() + 300, usegmt=True))
    fetch(Remote(server.url("a.zip"), "b.zip"), here, **QUICK)
    assert slept[:2] == [7.0, 7.0]
    assert 200 < slept[2] <= 300


def test_pauses_grow_from_failure_to_failure(
    server: Server, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(downloads.tenacity.nap, "sleep", slept.append)
    server.busy(times=99)
    refused(Remote(server.url("a.zip"), "a.zip"), here, attempts=6, pause=1.0)
    assert len(slept) == 5
    assert all(0.5 * 2**k <= pause <= 1.5 * 2**k for k, pause in enumerate(slept))


def test_a_wait_of_hours_is_left_to_the_user(server: Server, here: Path) -> None:
    server.busy(times=1, status=429, retry_after="7200")
    text = refused(Remote(server.url("a.zip"), "a.zip"), here)
    assert "HTTP 429" in text and "7200 s" in text
    assert len(server.requests) == 1


BAD_NUMBERS = ["\u00b2", "-1", "1e3", "ten", "12, 13", "9" * 5000, "0x10"]


@pytest.mark.parametrize("text", BAD_NUMBERS)
def test_a_malformed_length_is_one_line(server: Server, here: Path, text: str) -> None:
    server.announced = text
    said = refused(Remote(server.url("a.zip"), "a.zip"), here)
    assert server.url("a.zip") in said and len(said) < 200
    assert not here.exists() or visible(here) == []


@pytest.mark.parametrize("text", [*BAD_NUMBERS, "Wed, 21 Oct 99999 07:28:00 GMT", "Mon, 1 Jan 1"])
def test_a_malformed_wait_is_taken_as_none(server: Server, here: Path, text: str) -> None:
    server.busy(times=2, retry_after=text)
    fetch(Remote(server.url("a.zip"), "a.zip"), here, **QUICK)
    server.busy(times=99, retry_after=text)
    assert "HTTP 503 (2 attempts)" in refused(
        Remote(server.url("a.zip"), "b.zip"), here, attempts=2
    )


@pytest.mark.parametrize("length", [True, False])
def test_a_body_of_unannounced_size_is_taken_and_its_cut_noticed(
    length: bool, shelf: Path, here: Path
) -> None:
    with Server(shelf, length=length) as server:
        server.cut(after=32_768)
        fetch(Remote(server.url("a.zip"), "a.zip"), here, **QUICK)
        assert [one.range for one in server.requests] == [None, "bytes=32768-"]
    assert (here / "a.zip").read_bytes() == CONTENT


def test_an_empty_file_is_a_file(server: Server, shelf: Path, here: Path) -> None:
    (shelf / "empty").touch()
    assert fetch(Remote(server.url("empty"), "empty", size=0), here, **QUICK).read_bytes() == b""


@pytest.mark.parametrize(("kind", "digest"), [("sha256", SHA256), ("md5", MD5)])
def test_a_wrong_checksum_names_both_and_deletes_what_came(
    kind: str, digest: str, server: Server, here: Path
) -> None:
    wrong = digest[::-1]
    remote = Remote(server.url("a.zip"), "a.zip", **{kind: wrong})  # type: ignore[arg-type]
    text = refused(remote, here)
    assert text.startswith("a.zip: ") and wrong in text and digest in text
    assert visible(here) == []


def test_a_wrong_size_is_seen_before_anything_is_written(server: Server, here: Path) -> None:
    text = refused(Remote(server.url("a.zip"), "a.zip", size=5), here)
    assert text == f"a.zip: 5 bytes expected, the server has {SIZE}"
    assert server.requests[0].sent <= SIZE
    assert visible(here) == []


def test_a_wrong_size_that_was_not_announced_is_seen_at_the_end(shelf: Path, here: Path) -> None:
    with Server(shelf, length=False) as server:
        text = refused(Remote(server.url("a.zip"), "a.zip", size=5), here)
    assert text.startswith(f"a.zip: 5 bytes expected, {SIZE} came")
    assert visible(here) == []


def test_a_disk_that_is_too_small_is_noticed_first(
    server: Server, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, SIZE))
    text = refused(Remote(server.url("a.zip"), "a.zip"), here)
    assert text == f"a.zip: needs 300.0 kB, 300.0 kB are free on {here}"
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, SIZE + SIZE // 100))
    fetch(Remote(server.url("a.zip"), "a.zip"), here, **QUICK)


def test_needs_are_told_in_units_that_one_reads() -> None:
    assert [disk.readable_bytes(count) for count in (42e9, 3.14e6, 999, 1000)] == [
        "42.0 GB",
        "3.1 MB",
        "999 B",
        "1.0 kB",
    ]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of 128 kB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk is not allowed here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_fills_up_is_one_line_and_what_came_stays(
    server: Server, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = Remote(server.url("a.zip"), "a.zip", sha256=SHA256)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, 10**9))
    assert f"{small / 'a.zip'}: no space left on the disk" in refused(remote, small)
    there = (small / "a.zip.part").stat().st_size
    assert 50_000 < there < SIZE
    subprocess.run(["mount", "-o", "remount,size=1m", str(small)], check=True)
    fetch(remote, small, **QUICK)
    assert server.requests[-1].range == f"bytes={there}-"
    assert (small / "a.zip").read_bytes() == CONTENT


def test_a_folder_that_cannot_be_made_is_one_line(server: Server, here: Path) -> None:
    here.write_text("a file")
    assert str(here) in refused(Remote(server.url("a.zip"), "a.zip"), here)


def test_a_finished_file_is_neither_fetched_nor_read_again(
    server: Server, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = Remote(server.url("a.zip"), "a.zip", sha256=SHA256, size=SIZE)
    fetch(remote, here, **QUICK)
    monkeypatch.setattr(ledger, "_digests_of", lambda *_: pytest.fail("it was read again"))
    fetch(remote, here, **QUICK)
    fetch(Remote(server.url("a.zip"), "a.zip"), here, **QUICK)
    assert len(server.requests) == 1


def test_a_file_put_there_by_hand_is_read_once_and_kept(
    server: Server, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.mkdir()
    (here / "a.zip").write_bytes(CONTENT)
    remote = Remote(server.url("a.zip"), "a.zip", sha256=SHA256, md5=MD5)
    fetch(remote, here, **QUICK)
    monkeypatch.setattr(ledger, "_digests_of", lambda *_: pytest.fail("it was read again"))
    fetch(remote, here, **QUICK)
    assert server.requests == []


@pytest.mark.parametrize("known", [{"sha256": SHA256}, {"md5": MD5}, {"size": SIZE}, {}])
def test_a_file_that_changed_since_is_fetched_again(
    known: dict[str, Any], server: Server, here: Path
) -> None:
    remote = Remote(server.url("a.zip"), "a.zip", **known)
    path = fetch(remote, here, **QUICK)
    path.write_bytes(CONTENT[:-1])
    fetch(remote, here, **QUICK)
    assert path.read_bytes() == CONTENT
    assert len(server.requests) == 2


def test_a_file_of_the_right_size_with_other_content_is_fetched_again(
    server: Server, here: Path
) -> None:
    here.mkdir()
    remote = Remote(server.url("a.zip"), "a.zip", sha256=SHA256, size=SIZE)
    for count in (1, 2):
        (here / "a.zip").write_bytes(CONTENT[::-1])
        assert fetch(remote, here, **QUICK).read_bytes() == CONTENT
        assert len(server.requests) == count


def test_another_url_under_the_same_name_is_fetched(
    server: Server, shelf: Path, here: Path
) -> None:
    (shelf / "b.zip").write_bytes(b"second")
    fetch(Remote(server.url("a.zip"), "x.zip"), here, **QUICK)
    assert fetch(Remote(server.url("b.zip"), "x.zip"), here, **QUICK).read_bytes() == b"second"


@pytest.mark.parametrize("ledger", ["", "{", "[]", '{"a.zip": 3}', '{"a.zip": {"size": []}}'])
def test_a_spoiled_ledger_costs_a_check_and_nothing_else(
    ledger: str, server: Server, here: Path
) -> None:
    remote = Remote(server.url("a.zip"), "a.zip", sha256=SHA256)
    fetch(remote, here, **QUICK)
    (here / LEDGER).write_text(ledger)
    fetch(remote, here, **QUICK)
    assert len(server.requests) == 1
    assert json.loads((here / LEDGER).read_text())["a.zip"]["sha256"] == SHA256


def test_many_at_once_fetch_one_file_once(server: Server, here: Path) -> None:
    remote = Remote(server.url("a.zip"), "a.zip", sha256=SHA256)
    server.delay = 0.005
    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda _: fetch(remote, here, **QUICK), range(4)))
    assert len(server.requests) == 1
    assert {path.read_bytes() for path in paths} == {CONTENT}


def test_two_processes_fetch_one_file_once(server: Server, here: Path) -> None:
    server.delay = 0.02
    both = [start(server, here), start(server, here)]
    assert [process.wait() for process in both] == [0, 0]
    assert server.sent == SIZE
    assert (here / "a.zip").read_bytes() == CONTENT


def test_many_files_at_once_are_all_remembered(server: Server, shelf: Path, here: Path) -> None:
    names = [f"{number}.bin" for number in range(8)]
    for name in names:
        (shelf / name).write_bytes(name.encode())
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: fetch(Remote(server.url(name), name), here, **QUICK), names))
    assert sorted(json.loads((here / LEDGER).read_text())) == names
    assert sorted(os.listdir(here)) == [LEDGER, f"{LEDGER}.lock", *names]


def test_one_of_many_small_files_leaves_nothing_but_itself(
    server: Server, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    remote = Remote(server.url("a.zip"), "a.zip", sha256=SHA256)
    for _ in range(2):
        fetch(remote, here, quiet=True, **QUICK)
    assert os.listdir(here) == ["a.zip"]
    assert len(server.requests) == 1
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "access was refused (HTTP 401); accept the terms on its page and check"),
        (403, "access was refused (HTTP 403); accept the terms on its page and check"),
        (404, "no such file on the server (HTTP 404)"),
        (418, "the server answers HTTP 418"),
    ],
)
def test_a_refusal_is_one_line_and_final(
    status: int, words: str, server: Server, here: Path
) -> None:
    server.busy(times=9, status=status)
    text = refused(Remote(server.url(f"a.zip?sig={TOKEN}"), "a.zip"), here)
    assert text.startswith(f"{server.url('a.zip')}: {words}")
    assert len(server.requests) == 1


def test_a_server_that_is_not_there_is_one_line(here: Path, shelf: Path) -> None:
    with Server(shelf) as server:
        url = server.url(f"a.zip?sig={TOKEN}")
    text = refused(Remote(url, "a.zip"), here, attempts=2)
    check_named(text, server.url("a.zip"), "Connection refused", "2 attempts")
    assert TOKEN not in text


def test_a_silent_server_is_not_waited_for_without_end(server: Server, here: Path) -> None:
    server.silence = 30.0
    text = refused(Remote(server.url("a.zip"), "a.zip"), here, attempts=2, timeout=0.05)
    assert "the server does not answer (2 attempts)" in text


def test_a_server_that_falls_silent_is_asked_for_the_rest(server: Server, here: Path) -> None:
    server.delay = 30.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(downloads.tenacity.nap, "sleep", lambda _: setattr(server, "delay", 0.0))
        fetch(Remote(server.url("a.zip"), "a.zip"), here, pause=0.001, timeout=1.0)
    assert [one.range for one in server.requests] == [None, "bytes=16384-"]
    assert (here / "a.zip").read_bytes() == CONTENT


def test_redirects_in_a_circle_are_one_line(server: Server, here: Path) -> None:
    server.redirect("a.zip", server.url(f"a.zip?sig={TOKEN}"))
    assert "redirects in a circle" in refused(Remote(server.url("a.zip"), "a.zip"), here)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://h.org/x", "a.zip", "https://"])
def test_only_web_addresses_are_fetched(url: str, here: Path) -> None:
    assert "not an http or https URL" in refused(Remote(url, "x"), here)


def test_a_redirect_to_a_local_file_is_refused(server: Server, here: Path) -> None:
    server.redirect("a.zip", "file:///etc/passwd")
    assert "cannot be fetched" in refused(Remote(server.url("a.zip"), "a.zip"), here)


@pytest.mark.parametrize("status", [200, 302])
def test_a_login_page_is_not_saved_as_an_archive(status: int, server: Server, here: Path) -> None:
    server.page("login")
    if status == 200:
        server.page("a.zip")
    else:
        server.redirect("a.zip", server.url(f"login?next={TOKEN}"))
    text = refused(Remote(server.url("a.zip"), "a.zip"), here)
    assert "a web page came instead of a.zip" in text and "check your credentials" in text
    assert visible(here) == []


def test_a_page_that_was_asked_for_is_saved(server: Server, shelf: Path, here: Path) -> None:
    (shelf / "index.html").write_text("<html>")
    fetch(Remote(server.url("index.html"), "index.html"), here, **QUICK)
    assert (here / "index.html").read_text() == "<html>"


def test_credentials_reach_their_server_and_no_text_or_file(
    shelf: Path,
    here: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    with Server(shelf, auth=(USER, KEY)) as server:
        url = server.url(f"a.zip?X-Signature={TOKEN}")
        remote = Remote(url, "a.zip", sha256=SHA256)
        server.cut(after=100_000, times=1)
        server.busy(times=1)
        fetch(remote, here, auth=(USER, KEY), **QUICK)
        assert server.requests[-1].headers["Authorization"].startswith("Basic ")
        with_user = url.replace("//", f"//{USER}:{TOKEN}@")
        server.cut(after=50_000, times=99)
        for bad in (
            Remote(url, "b.zip"),
            Remote(with_user, "c.zip"),
            Remote(url, "d.zip", sha256=MD5 * 2),
            Remote(f"{url}/nowhere", "e.zip"),
        ):
            refused(bad, here, auth=None if bad.url == with_user else (USER, f"{KEY}x"))
        server.busy(times=1, status=500)
        server.redirect("moved", f"http://127.0.0.1:9/x?sig={TOKEN}")
        refused(Remote(server.url("moved"), "f.zip"), here, auth=(USER, KEY), attempts=1)
    shown = capfd.readouterr()
    texts = [shown.out, shown.err, caplog.text, repr(remote)]
    texts += [path.read_text("latin-1") for path in here.rglob("*") if path.is_file()]
    texts += [str(path) for path in tmp_path.rglob("*")]
    encoded = [one.headers.get("Authorization", "Basic -").split()[1] for one in server.requests]
    for secret in {KEY, KEY.encode().decode("latin-1"), TOKEN, USER, *encoded} - {"-"}:
        assert not any(secret in text for text in texts), secret
    assert "GET /a.zip" in caplog.text, "the log was not looked at"


def test_a_redirect_to_another_host_loses_the_credentials(
    shelf: Path, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine localhost login {USER} password other\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with Server(shelf, auth=(USER, KEY)) as front, Server(shelf) as store:
        front.redirect("near", front.url("a.zip"))
        front.redirect("far", store.url(f"a.zip?sig={TOKEN}", host="localhost"))
        fetch(Remote(front.url("near"), "near"), here, auth=(USER, KEY), **QUICK)
        store.cut(after=100_000)
        fetch(Remote(front.url("far"), "far"), here, auth=(USER, KEY), **QUICK)
        assert all("Authorization" in one.headers for one in front.requests)
        assert [one.range for one in store.requests] == [None, "bytes=100000-"]
        assert not any("Authorization" in one.headers for one in store.requests)
    assert (here / "far").read_bytes() == (here / "near").read_bytes() == CONTENT


def test_an_open_download_sends_no_credentials_of_the_users_netrc(
    server: Server, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine 127.0.0.1 login {USER} password other\n")
    monkeypatch.setenv("NETRC", str(netrc))
    fetch(Remote(server.url("a.zip"), "a.zip"), here, **QUICK)
    assert "Authorization" not in server.requests[0].headers


def test_credentials_of_an_url_are_used(shelf: Path, here: Path) -> None:
    with Server(shelf, auth=("me", "p/w")) as server:
        url = server.url("a.zip").replace("//", "//me:p%2Fw@")
        fetch(Remote(url, "a.zip"), here, **QUICK)
    assert (here / "a.zip").read_bytes() == CONTENT


@pytest.mark.parametrize("auth", [(USER, KEY), None])
def test_credentials_do_not_cross_the_network_unencrypted(
    auth: tuple[str, str] | None, here: Path
) -> None:
    user = "" if auth else f"{USER}:{TOKEN}@"
    text = refused(Remote(f"http://{user}h.example/a.zip", "a.zip"), here, auth=auth)
    assert text == "http://h.example/a.zip: credentials are sent over https only"
