"""A model from its ``load`` block, by the loader that its ``source`` names."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stamp.config.registries.model_sources import SOURCES
from stamp.core.errors import UserError, say
from stamp.core.file_digest import check_sha256
from stamp.models.hub import unpinned
from stamp.models.loaded_model import LoadedModel


def load_model(
    block: Mapping[str, Any], classes: Sequence[str], weights: Path | None
) -> LoadedModel:
    """The model of a ``load`` block.

    ``weights`` of another content than the block's ``sha256`` says are refused. Weights of the hub
    that no commit pins may change: a line on stderr says which these are.
    """
    pinned = block.get("checkpoint", block).get("sha256")
    if weights is not None and pinned is not None:
        check_sha256(weights, pinned)
    loader = importlib.import_module(SOURCES[block["source"]].module)
    loaded: LoadedModel = loader.load(block, classes, weights)
    if loaded.origin and unpinned(block):
        repo, commit = loaded.origin["hub"], loaded.origin["revision"]
        say(f"weights of '{repo}' are of commit {commit}, which nothing pins")
    return loaded


def load_named(
    model: str, block: Mapping[str, Any], classes: Sequence[str], weights: Path | None
) -> LoadedModel:
    """The model of a ``load`` block; a mistake in it names the model."""
    try:
        return load_model(block, classes, weights)
    except UserError as mistake:
        raise UserError(f"model '{model}': {mistake}") from None
