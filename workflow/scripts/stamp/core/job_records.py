"""What Snakemake recorded of each result, kept among the results, so that a copy can be trusted.

Snakemake keeps in ``.snakemake/metadata`` with which parameters and inputs a file was made, and
decides by it whether a job is due. A copy of the results alone lacks that: files are then due or
not by their age only. Each run therefore leaves these records, with the digest of each result, in
``.provenance.json`` of the results, and ``python -m stamp trust`` brings them back.

Snakemake has one JSON file per result, named after it in Base64, in folders of its own where the
name would be too long for a file system.
"""

from __future__ import annotations

import json
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from stamp.core.atomic_file import atomic_write
from stamp.core.errors import UserError
from stamp.core.file_digest import Digests

METADATA = Path(".snakemake", "metadata")
KEPT, DIGESTS = ".provenance.json", ".provenance.digests.json"
LONGEST = 254  # characters of a name, as Snakemake cuts it
UNNEEDED = ("conda_env", "code", "shellcmd", "log")  # of a record: nothing is decided by them
LARGEST = 1 << 28  # bytes that Snakemake reads to compare content (profiles/default); above, sizes


def file_of(result: str) -> Path:
    """Where Snakemake keeps its record of a result."""
    name = urlsafe_b64encode(result.encode()).decode()
    parts = [name[start : start + LONGEST] for start in range(0, len(name), LONGEST)]
    return METADATA.joinpath(*(f"@{part}" for part in parts[:-1]), parts[-1])


def recorded() -> Iterator[tuple[str, Path]]:
    """Each result of which Snakemake has a record, and that record's file."""
    for folder, _, names in os.walk(METADATA):
        above = "".join(part[1:] for part in Path(folder).relative_to(METADATA).parts)
        for name in names:
            with suppress(ValueError):
                yield urlsafe_b64decode(above + name).decode(), Path(folder, name)


def measured(result: str, digests: Digests) -> dict[str, Any]:
    """What tells a result from another: its size, and its digest if it is no giant."""
    if os.path.isdir(result):
        return {}
    size = os.stat(result).st_size
    return {"size": size, **({"sha256": digests.of(result)} if size <= LARGEST else {})}


def keep(results: Path) -> None:
    """Put the records of all files in ``results`` among them, as far as the disk allows it."""
    digests, found = Digests(results / DIGESTS, large=0), {}
    with suppress(OSError, UserError):
        for result, file in sorted(recorded()):
            if not Path(result).is_relative_to(results) or not os.path.exists(result):
                continue
            record = json.loads(file.read_text())
            about = {key: value for key, value in record.items() if key not in UNNEEDED}
            found[result] = {"record": about, **measured(result, digests)}
        digests.save()
        with atomic_write(results / KEPT) as part:
            part.write_text(json.dumps(found, sort_keys=True))


def read(results: Path) -> dict[str, dict[str, Any]]:
    """What :func:`keep` left, by result; nothing where it left nothing that can be read."""
    try:
        return dict(json.loads((results / KEPT).read_text()))
    except (OSError, ValueError, TypeError):
        return {}


def restore(result: str, record: dict[str, Any]) -> None:
    """Let Snakemake know a record of a result again."""
    file = file_of(result)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(record))
