"""The kinds of model: a new model is a YAML entry, a new kind is a module and a line here.

A loader module has ``load(block, classes, weights) -> Loaded``. It is named here as text, so that
planning imports no torch and a change of one loader reruns only its own models.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Source:
    """Where a loader lives, which packages decide its numbers, whether a rule trains it."""

    module: str
    packages: tuple[str, ...]
    trained: bool = False


SOURCES = {
    "train": Source("stamp.models.trained", ("torch", "timm"), trained=True),
    "timm": Source("stamp.models.timm_hub", ("torch", "timm")),
}


@cache
def _version(package: str) -> str:
    from importlib.metadata import version

    return version(package)


def versions(source: str) -> dict[str, str]:
    """Versions of the packages that a kind of model runs on, without importing them."""
    return {package: _version(package) for package in SOURCES[source].packages}
