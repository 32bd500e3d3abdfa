"""Options of data sets, checked one by one, and files inside installed packages."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stamp.core.errors import UserError, suggest


def package_file(package: str, inside: str) -> Path | None:
    """A data file inside an installed package, found without importing it; None without one."""
    spec = importlib.util.find_spec(package)
    roots = (spec.submodule_search_locations if spec else None) or ()
    files = [Path(root) / inside for root in roots]
    return next((file for file in files if file.is_file()), None)


def bundled_file(dataset: str, package: str, inside: str) -> Path:
    """The file inside an installed package that a data set comes as."""
    if file := package_file(package, inside):
        return file
    wheel = {"sklearn": "scikit-learn"}.get(package, package)
    if importlib.util.find_spec(package) is None:
        raise UserError(
            f"data set '{dataset}' comes inside the package {wheel}, which is not installed: "
            f"pip install {wheel}"
        )
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


def switch(dataset: str, option: str, value: Any) -> bool:
    """``value`` where it is true or false."""
    if not isinstance(value, bool):
        raise UserError(
            f"data set '{dataset}': option '{option}' is {value!r}; expected true or false"
        )
    return value


def choice(dataset: str, option: str, value: Any, known: Sequence[str]) -> str:
    """``value`` where it is one of ``known``."""
    if value not in known:
        hint = suggest(str(value), known)
        raise UserError(f"data set '{dataset}': option '{option}': unknown value '{value}': {hint}")
    return str(value)


def choices(dataset: str, option: str, values: Any, known: Sequence[str]) -> list[str]:
    """``values`` where they are a list of one or more of ``known``, without repeats."""
    if not isinstance(values, (list, tuple)) or not values:
        raise UserError(
            f"data set '{dataset}': option '{option}' is {values!r}; expected a list of one or "
            f"more of: {', '.join(known)}"
        )
    return list(dict.fromkeys(choice(dataset, option, value, known) for value in values))
