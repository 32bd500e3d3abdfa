"""A data set's folder: files downloaded into it, archives unpacked, images checked to be there."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from stamp.core.artifacts import read_json, write_json
from stamp.core.errors import UserError
from stamp.core.progress import bar
from stamp.data.archives import unpack
from stamp.data.credentials import for_url
from stamp.data.transfer.fetch import fetch
from stamp.data.transfer.remote import Remote

AT_ONCE = 4
SAMPLE = 1000  # members of an archive that are looked for before it is taken as unpacked
FOLDERS = 64  # folders whose names are held at once; a data set's paths come folder by folder
LOOPBACK = ("127.0.0.1", "localhost", "::1")
NEEDED = {
    "kaggle": "put your API token at ~/.kaggle/kaggle.json or set KAGGLE_USERNAME and KAGGLE_KEY",
    "physionet": "put `machine {host} login <user> password <password>` into ~/.netrc",
}


def sign_in(access: str, url: str) -> tuple[str, str] | None:
    """The user's name and key for a file; Kaggle's go to Kaggle alone."""
    host = urlsplit(url).hostname or ""
    theirs = host == "kaggle.com" or host.endswith(".kaggle.com") or host in LOOPBACK
    if access == "kaggle" and not theirs:
        return None
    found = for_url(access, url)
    if found is None and access in NEEDED:
        raise UserError(f"{host}: no credentials; {NEEDED[access].format(host=host)}")
    return found


def obtain(remote: Mapping[str, Any], access: str, root: str | Path) -> dict[str, Any]:
    """Download a file into ``root``, unpacked where it is an archive; what is there is kept.

    A record in ``root/.stamp`` says what came of each file, with the sizes of some members, so that
    an archive that was unpacked and removed is not downloaded again.
    """
    folder, name = Path(root), remote["name"]
    record = folder / ".stamp" / f"{name.replace('/', '_')}.json"
    identity = _identity(remote)
    known = read_json(record) if record.is_file() else {}
    if known.get("identity") == identity and _there(folder, known["members"]):
        return known
    place = folder / ".downloads" if remote.get("unpack") else folder
    checks = {key: remote.get(key) for key in ("sha256", "md5", "size")}
    file = fetch(Remote(remote["url"], name, **checks), place, sign_in(access, remote["url"]))
    members = [name]
    if remote.get("unpack"):
        members = unpack(file, folder, password=remote.get("password"))
        file.unlink()
    sample = members[:: max(1, len(members) // SAMPLE)]
    sizes = {member: (folder / member).stat().st_size for member in sample}
    known = {"identity": identity, "count": len(members), "members": sizes, "name": name}
    write_json(record, known)
    return known


def complete(
    name: str, paths: Sequence[str], root: Path, url: str | None, access: str, help: str
) -> dict[str, Any]:
    """Check that every image is there; those that are missing are fetched from under ``url``."""
    missing = absent(paths)
    if missing and url is None:
        first = os.path.relpath(missing[0], root)
        raise UserError(
            f"data set '{name}': {len(missing)} of {len(paths)} images are missing in {root}, "
            f"first {first}; {help}"
        )
    if missing and url is not None:
        relative = [Path(path).relative_to(root).as_posix() for path in missing]
        remotes = [Remote(f"{url.rstrip('/')}/{quote(one)}", one) for one in relative]
        auth = sign_in(access, url)
        with ThreadPoolExecutor(AT_ONCE) as workers:
            done = workers.map(lambda one: fetch(one, root, auth, quiet=True), remotes)
            for _ in bar(done, f"{name} images", len(remotes)):
                pass
    return {"dataset": name, "images": len(paths), "fetched": len(missing), "root": str(root)}


def absent(paths: Sequence[str]) -> list[str]:
    """The paths that are not there, each folder listed once."""
    listed: dict[str, set[str]] = {}
    missing = []
    for path in paths:
        folder, name = os.path.split(path)
        if folder not in listed:
            if len(listed) >= FOLDERS:
                del listed[next(iter(listed))]
            listed[folder] = set(os.listdir(folder)) if os.path.isdir(folder) else set()
        if name not in listed[folder]:
            missing.append(path)
    return missing


def _identity(remote: Mapping[str, Any]) -> str:
    """What a file must be: its checksum, or its address where none is known."""
    known = {key: remote.get(key) for key in ("name", "sha256", "md5", "size", "unpack")}
    if not (known["sha256"] or known["md5"]):
        known["url"] = remote["url"]
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:16]


def _there(folder: Path, members: Mapping[str, int]) -> bool:
    """Whether every member lies in the folder with its size."""
    for member, size in members.items():
        try:
            if (folder / member).stat().st_size != size:
                return False
        except OSError:
            return False
    return True
