"""Where a model's weights come from the hub, and whether at a commit that can't change.

Nothing is imported here: `python -m stamp status` asks this of a whole zoo.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

PARTS = ("initial", "backbone", "checkpoint")
FILES = ("model.safetensors", "pytorch_model.bin")


@dataclass(frozen=True, slots=True)
class Origin:
    """Weights of the hub in a ``load`` block: the part that names them, and what it says.

    ``tag`` is timm's name, whose repository timm knows; ``repo`` a repository. One of them is set.
    """

    part: str | None
    tag: str | None
    repo: str | None
    files: tuple[str, ...]
    revision: str | None

    @property
    def pinned(self) -> bool:
        return is_commit(self.revision)


def is_commit(revision: str | None) -> bool:
    """Whether a revision is a commit, or its first seven digits or more.

    A branch or tag may point to another commit tomorrow.
    """
    return re.fullmatch("[0-9a-f]{7,40}", revision or "") is not None


def origins(load: Mapping[str, Any]) -> Iterator[Origin]:
    """The weights of a ``load`` block that come from the hub; a checkpoint replaces the others."""
    if load["source"] == "timm" or "hub" in load:
        yield from _origin(None, load, load.get("name"))
    chosen = [part for part in PARTS if isinstance(load.get(part), Mapping)]
    for part in ["checkpoint"] if "checkpoint" in chosen else chosen:
        yield from _origin(part, load[part], load[part].get("timm"))


def _origin(part: str | None, settings: Mapping[str, Any], tag: str | None) -> Iterator[Origin]:
    if "file" in settings or "url" in settings or settings.get("none"):
        return
    repo = settings.get("hub")
    named = settings.get("hub_file", FILES if repo is None else "model.safetensors")
    files = (named,) if isinstance(named, str) else tuple(named)
    if repo or tag:
        yield Origin(part, None if repo else tag, repo, files, settings.get("revision"))


def unpinned(load: Mapping[str, Any]) -> bool:
    """Whether some weights of a model may be others tomorrow."""
    return any(not origin.pinned for origin in origins(load))
