"""Splits drawn by a hash of the group: no group is split, and a growing table moves nobody."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from stamp.core.errors import UserError

DEFAULT: Mapping[str, float] = {"calibration": 0.2, "test": 0.8}


def places(groups: Iterable[str], salt: str) -> pl.DataFrame:
    """A number in [0, 1) for each group that depends on nothing but the salt and the group."""
    distinct = sorted(set(groups))
    digests = (hashlib.blake2b(f"{salt}:{group}".encode(), digest_size=8) for group in distinct)
    # 53 bits: the largest whole numbers that a double divides exactly
    numbers = [(int.from_bytes(digest.digest(), "big") >> 11) / 2**53 for digest in digests]
    return pl.DataFrame(
        {"group": distinct, "place": numbers}, schema={"group": pl.String, "place": pl.Float64}
    )


def checked_shares(dataset: str, shares: Any) -> dict[str, float]:
    """Shares by split, each positive, one in all; by default a fifth is for calibration."""
    if shares is None:
        return dict(DEFAULT)
    where = f"data set '{dataset}': option 'splits'"
    if not isinstance(shares, Mapping) or not shares:
        raise UserError(f"{where} is {shares!r}; expected shares, such as {dict(DEFAULT)}")
    for name, share in shares.items():
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 1:
            raise UserError(f"{where}: the share of '{name}' is {share!r}; expected 0 to 1")
    if abs(sum(shares.values()) - 1) > 1e-6:
        raise UserError(f"{where}: the shares sum to {sum(shares.values()):g}, not to 1")
    return {str(name): float(share) for name, share in shares.items()}


def drawn(units: pl.Series, shares: Mapping[str, float], seed: int) -> pl.Series:
    """The split of each row: all rows of a unit get the same one, by the unit's hash.

    A unit's split depends on its name, the seed and the shares alone, so that a table that grows
    moves nobody from one split to another. The shares hold for units on average, not exactly.
    """
    place, upper = pl.col("place"), 0.0
    names, bounds = list(shares), []
    for name in names[:-1]:
        upper += shares[name]
        bounds.append(upper)
    split: pl.Expr = pl.lit(names[-1])
    for name, bound in reversed(list(zip(names[:-1], bounds, strict=True))):
        split = pl.when(place < bound).then(pl.lit(name)).otherwise(split)
    rows = pl.DataFrame({"group": units.cast(pl.String)})
    found = rows.join(
        places(rows["group"], str(seed)), on="group", how="left", maintain_order="left"
    )
    return found.with_columns(split=split)["split"]
