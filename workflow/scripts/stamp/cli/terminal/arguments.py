"""Types of commands' arguments: a value out of range is refused by argparse, before any work."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any


class Place(str):
    """A path, or a name that may be a path's, as the user wrote it from where the user is."""


def at_least(least: int) -> Callable[[str], int]:
    """A whole number, ``least`` or more."""

    def whole(text: str) -> int:
        try:
            found = int(text)
        except ValueError:
            found = least - 1
        if found < least:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of {least} or more")
        return found

    return whole


def between(low: float, high: float = math.inf) -> Callable[[str], float]:
    """A number above ``low`` and below ``high``."""

    def number(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not low < found < high:
            end = "" if math.isinf(high) else f" and below {high:g}"
            raise argparse.ArgumentTypeError(f"'{text}' is not a number above {low:g}{end}")
        return found

    return number


def mapping(text: str) -> dict[str, Any]:
    """A mapping in YAML."""
    import yaml

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        found = None
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f"'{text}' is not a mapping such as {{layers: [1, 1]}}")
    return found
