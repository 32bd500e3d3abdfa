"""Archives unpacked safely: nothing outside the folder, nothing half-written, nothing twice.

Members are written here as plain files, never by ``tarfile`` or ``zipfile`` themselves: no link,
device, owner or mode of an archive reaches the disk, so no member can be written through one.
A link to another member becomes a copy of it. A compressed archive is read through once before, so
that what is wrong with it, or does not fit on the disk, is known before anything is written.
"""

from __future__ import annotations

import gzip
import lzma
import posixpath
import re
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Protocol

from stamp.core.artifacts import atomic_write
from stamp.core.errors import UserError
from stamp.core.progress import bar
from stamp.data.transfer.disk import require_space

TAR = (".tar", ".tar.gz", ".tgz", ".tar.bz2")
ENDINGS = (*TAR, ".zip", ".gz")
BLOCK = 1 << 20
LONGEST_LINK = 4096
BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    UnicodeDecodeError,
)


@dataclass(frozen=True, slots=True)
class Member:
    """One entry of an archive: its name, its size, what kind it is and what a link points at."""

    name: str
    size: int
    kind: str
    link: str
    handle: Any


class ArchiveFile(Protocol):
    """What :func:`unpack` needs of an archive."""

    def members(self) -> Iterator[Member]: ...

    def open(self, member: Member) -> IO[bytes]: ...


def unpack(
    archive: Path,
    folder: Path,
    strip: str = "",
    password: str | None = None,
    members: Callable[[str], bool] | None = None,
) -> list[str]:
    """The files of an archive under ``folder``, by their relative names, in the archive's order.

    ``strip`` is a leading folder to drop from names; ``members`` chooses by the names that are
    left. A file that is there with the right size is not written again.
    """
    archive, folder = Path(archive), Path(folder)
    if not archive.is_file():
        raise UserError(f"{archive}: no such file")
    strip = strip.strip("/")
    free = shutil.disk_usage(_existing(folder)).free
    with (
        _damage(archive),
        open(archive, "rb") as raw,
        _source(archive, raw, password, free) as source,
    ):
        work = _Work(archive, folder, strip, members or (lambda name: True), {})
        with bar(None, f"reading {archive.name}", archive.stat().st_size, "B") as meter:
            read = partial(_advance, meter, raw)
            listing = work.listing(source.members(), free, read)
        with bar(None, archive.name, work.plan(listing), "B") as meter:
            return work.run(source, listing, meter.update)


def _existing(folder: Path) -> Path:
    """A folder, or the first above it that is there."""
    return next(one for one in (folder, *folder.absolute().parents) if one.is_dir())


def _advance(meter: Any, raw: IO[bytes]) -> None:
    meter.update(max(0, raw.tell() - meter.n))


@dataclass(slots=True)
class _Work:
    """What an unpacking has to do, and how far it is."""

    archive: Path
    folder: Path
    strip: str
    chosen: Callable[[str], bool]
    known: dict[str, Member]

    def listing(
        self, members: Iterator[Member], free: int, read: Callable[[], None]
    ) -> list[Member]:
        """All members of an archive, or as many as are known not to fit on the disk."""
        found, missing = [], 0
        for member in members:
            self.accept(member)
            found.append(member)
            read()
            name = self.target(member)
            if member.kind == "file" and self.chosen(name):
                missing += 0 if _there(self.folder / name, member.size) else member.size
            if missing > free:
                require_space(self.archive.name, missing, _existing(self.folder))
        return found

    def plan(self, listing: list[Member]) -> int:
        """The bytes of all that is wanted; what can be wrong is found before anything is written"""
        self.check_strip()
        wanted = {}
        for member in listing:
            name = self.target(member)
            if member.kind != "folder" and self.chosen(name):
                wanted[name] = self.follow(member).size
        missing = sum(size for name, size in wanted.items() if not _there(self.folder / name, size))
        require_space(self.archive.name, missing, _existing(self.folder))
        self.folder.mkdir(parents=True, exist_ok=True)
        return sum(wanted.values())

    def run(
        self, source: ArchiveFile, listing: Sequence[Member], tick: Callable[[int], None]
    ) -> list[str]:
        """Write what is wanted and missing; links last, when all members are known."""
        done: dict[str, None] = {}
        links = []
        for member in listing:
            name = self.target(member)
            if member.kind == "folder" or not self.chosen(name):
                continue
            if member.kind == "file":
                self.write(source, member, name, name in done, tick)
            else:
                links.append(member)
            done[name] = None
        for link in links:
            self.write(source, self.follow(link), self.target(link), False, tick)
        return list(done)

    def write(
        self,
        source: ArchiveFile,
        member: Member,
        name: str,
        again: bool,
        tick: Callable[[int], None],
    ) -> None:
        path = self.folder / name
        if not again and _there(path, member.size):
            tick(member.size)
            return
        written = 0
        with atomic_write(path) as part, source.open(member) as data, open(part, "wb") as file:
            while block := data.read(BLOCK):
                written += file.write(block)
                tick(len(block))
            if written != member.size:
                raise EOFError(f"{member.name} has {written} of {member.size} bytes")

    def accept(self, member: Member) -> None:
        """Refuse a member that would leave the folder; remember one that links may point at."""
        if why := _unsafe(member):
            raise UserError(
                f"{self.archive}: member {member.name!r} {why}; it is not safe to unpack"
            )
        self.known[posixpath.normpath(member.name)] = member

    def target(self, member: Member) -> str:
        name = posixpath.normpath(member.name)
        return name.removeprefix(f"{self.strip}/") if self.strip else name

    def check_strip(self) -> None:
        if self.strip and not any(name.startswith(f"{self.strip}/") for name in self.known):
            raise UserError(f"{self.archive}: no member lies in a folder '{self.strip}'")

    def follow(self, member: Member) -> Member:
        """The file that a link, or a chain of them, ends at."""
        passed = {member.name}
        end: Member | None = member
        while end is not None and end.kind == "link":
            end = self.known.get(end.link)
            if end is not None and end.name in passed:
                end = None
            passed |= {end.name} if end else set()
        if end is None or end.kind != "file":
            raise UserError(
                f"{self.archive}: member {member.name!r} is a link to no file of the archive"
            )
        return end


def _there(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def _unsafe(member: Member) -> str:
    """Why a member must not be unpacked, or nothing."""
    name = member.name
    if not name or "\0" in name:
        return "has no usable name"
    if name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:[\\/]", name):
        return "has an absolute path"
    if ".." in re.split(r"[/\\]", name):
        return "leads out of the folder by '..'"
    if member.kind == "other":
        return "is neither a file nor a folder"
    if member.kind == "link" and (member.link.startswith("/") or member.link.split("/")[0] == ".."):
        return "is a link that leads out of the folder"
    return ""


@contextmanager
def _source(
    archive: Path, raw: IO[bytes], password: str | None, free: int
) -> Iterator[ArchiveFile]:
    name = archive.name.lower()
    if not name.endswith(ENDINGS):
        raise UserError(f"{archive}: unknown kind of archive; known: {', '.join(ENDINGS)}")
    if password is not None and not name.endswith(".zip"):
        raise UserError(f"{archive}: only a .zip takes a password")
    if name.endswith(".zip"):
        with zipfile.ZipFile(raw) as zipped:
            yield _Zip(archive, zipped, password)
    elif name.endswith(TAR):
        with tarfile.open(fileobj=raw, mode="r:*", tarinfo=_Header) as tar:
            yield _Tar(tar)
    else:
        yield _Gzip(archive.name[: -len(".gz")], raw, free)


class _Header(tarfile.TarInfo):
    """A header that is read strictly: ``tarfile`` takes a broken one for the archive's end."""

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> tarfile.TarInfo:  # type: ignore[override]
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(str(error)) from None


class _Tar:
    def __init__(self, tar: tarfile.TarFile):
        self.tar = tar

    def members(self) -> Iterator[Member]:
        for info in self.tar:
            if info.issym():
                link = posixpath.join(posixpath.dirname(info.name), info.linkname)
            else:
                link = info.linkname
            kinds = {"file": info.isreg(), "folder": info.isdir()}
            kinds["link"] = info.issym() or info.islnk()
            kind = next((kind for kind, true in kinds.items() if true), "other")
            yield Member(info.name, info.size, kind, posixpath.normpath(link), info)
        # What follows the end mark holds the checksum of a compressed archive.
        while self.tar.fileobj is not None and self.tar.fileobj.read(BLOCK):
            pass

    def open(self, member: Member) -> IO[bytes]:
        data = self.tar.extractfile(member.handle)
        if data is None:
            raise tarfile.ReadError(f"{member.name} has no content")
        return data


class _Zip:
    def __init__(self, archive: Path, zipped: zipfile.ZipFile, password: str | None):
        self.archive, self.zipped = archive, zipped
        self.password = None if password is None else password.encode()

    def members(self) -> Iterator[Member]:
        for info in self.zipped.infolist():
            mode = stat.S_IFMT(info.external_attr >> 16)
            if info.filename.endswith("/"):
                kind = "folder"
            else:
                kinds = {0: "file", stat.S_IFREG: "file", stat.S_IFLNK: "link"}
                kind = kinds.get(mode, "other")
            member = Member(info.filename, info.file_size, kind, "", info)
            yield self._with_link(member) if kind == "link" else member

    def _with_link(self, member: Member) -> Member:
        with self.open(member) as data:
            text = data.read(LONGEST_LINK).decode("utf-8", "replace")
        link = posixpath.normpath(posixpath.join(posixpath.dirname(member.name), text))
        return Member(member.name, member.size, member.kind, link, member.handle)

    def open(self, member: Member) -> IO[bytes]:
        where = f"{self.archive}: member {member.name!r}"
        try:
            return self.zipped.open(member.handle, pwd=self.password)
        except NotImplementedError:
            raise UserError(f"{where} is packed or encrypted in a way that is not known") from None
        except RuntimeError:
            what = "needs a password" if self.password is None else "has another password"
            raise UserError(f"{where} {what}") from None


class _Gzip:
    """One file, whose size nothing in the archive says: it is read up to what fits on the disk."""

    def __init__(self, name: str, raw: IO[bytes], free: int):
        self.name, self.raw, self.free = name, raw, free

    def members(self) -> Iterator[Member]:
        size = 0
        with gzip.GzipFile(fileobj=self.raw) as data:
            while size <= self.free and (block := data.read(BLOCK)):
                size += len(block)
        yield Member(self.name, size, "file", "", None)

    def open(self, member: Member) -> IO[bytes]:
        self.raw.seek(0)
        return gzip.GzipFile(fileobj=self.raw)  # type: ignore[return-value]


@contextmanager
def _damage(archive: Path) -> Iterator[None]:
    """What a broken archive or a failing disk raises, as one line."""
    try:
        yield
    except BROKEN as error:
        raise UserError(_damaged(archive, error)) from None
    except OSError as error:
        if error.errno is None:
            raise UserError(_damaged(archive, error)) from None
        raise UserError(
            f"{error.filename2 or error.filename or archive}: {error.strerror}"
        ) from None


def _damaged(archive: Path, error: Exception) -> str:
    why = " ".join(str(error).split()) or type(error).__name__
    return f"{archive}: damaged ({why}); delete it and run again"
