"""Which device the forward passes use, found without importing torch."""

from __future__ import annotations

import os
from pathlib import Path

from stamp.errors import UserError, suggest

DEVICES = ("auto", "cuda", "cpu")


def choose(setting: str) -> str:
    """``cuda`` or ``cpu`` for a configured ``auto``, ``cuda`` or ``cpu``."""
    if setting not in DEVICES:
        raise UserError(f"device '{setting}' is unknown: {suggest(setting, DEVICES)}")
    if setting != "auto":
        return setting
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    present = any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists()
    return "cuda" if present and not hidden else "cpu"
