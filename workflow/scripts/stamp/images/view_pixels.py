"""The pixels of a view, whether they are cached or decoded each time that they are asked for.

:mod:`stamp.images.pixel_cache` and :mod:`stamp.images.decoded_images` have an ``open_view`` each. A
job is told by name which of them opens its view, so that it depends on the code of that one alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import polars as pl


class Pixels(Protocol):
    """The images of a view as uint8 rows [h, w, c], wherever they come from."""

    @property
    def ids(self) -> Sequence[str]: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __len__(self) -> int: ...

    def rows(self, start: int, stop: int) -> np.ndarray: ...

    def take(self, rows: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True, slots=True)
class OpenedView:
    """The pixels of a view, and a digest of what they are made from."""

    pixels: Pixels
    digest: str


def open_view(
    view: pl.DataFrame, files: Mapping[str, Any], how: Mapping[str, Any], name: str, threads: int
) -> OpenedView:
    """The pixels of a view, opened by the module that ``how`` names.

    ``files`` are a job's inputs, ``name`` is what errors call the view.
    """
    opened: OpenedView = import_module(how["module"]).open_view(view, files, how, name, threads)
    return opened


def open_views(
    views: Mapping[str, pl.DataFrame],
    caches: Mapping[str, Sequence[str]],
    how: Mapping[str, Mapping[str, Any]],
    study: str,
    threads: int,
) -> list[OpenedView]:
    """The pixels of a study's views, each as ``how`` says of it.

    ``caches`` has the files of their pixel caches by part, one per view or none at all.
    """
    opened = []
    for place, (name, view) in enumerate(views.items()):
        files = {part: every[place] for part, every in caches.items() if every}
        opened.append(open_view(view, files, how[name], f"study '{study}': view '{name}'", threads))
    return opened
