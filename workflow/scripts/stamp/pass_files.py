"""Reading what further forward passes of a model left behind, without any of its code."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stamp.io import read_arrays, read_json


class Unavailable(Exception):
    """A kind of pass that a model does not have; the message says why."""


def read_pass(manifest: str | Path, kind: str, **expected: str) -> dict[str, np.ndarray]:
    """The arrays of one kind of pass, after checking what they were made from."""
    record = read_json(manifest)
    found = record["passes"].get(kind, {"reason": f"no pass '{kind}' was made"})
    if "reason" in found:
        raise Unavailable(found["reason"])
    return read_arrays(found["file"], model=record["model"], **expected)
