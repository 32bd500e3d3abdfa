"""Progress bars that stay readable when several jobs share a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any


def bar(items: Iterable[Any] | None, what: str, total: int, unit: str = "image") -> Any:
    """A tqdm bar: live on a terminal, a line every half minute in a log."""
    from tqdm import tqdm

    live = sys.stderr.isatty()
    return tqdm(
        items,
        total=total,
        desc=what,
        unit=unit,
        unit_scale=True,
        mininterval=0.5 if live else 30.0,
        leave=False,
        dynamic_ncols=live,
        file=sys.stderr,
    )
