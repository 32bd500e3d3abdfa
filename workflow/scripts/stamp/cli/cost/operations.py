"""Operations that one image takes, by the backbone that a zoo names."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache

from stamp.config.zoo import Model
from stamp.core.shipped import ROOT

FILE = ROOT / "resources" / "gflops.csv"
USUAL, SIZE = 8.0, 224  # of a network that the table does not have, and at which size


@dataclass(frozen=True, slots=True)
class Gflops:
    """Billions of operations per image, and whether they are assumed."""

    number: float
    assumed: bool


@cache
def counted() -> dict[str, dict[int, float]]:
    """The table of the shipped zoos' backbones: by size."""
    found: dict[str, dict[int, float]] = {}
    with FILE.open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["backbone"], {})[int(row["size"])] = float(row["gflops"])
    return found


def gflops(model: Model) -> Gflops:
    """Those of a model: counted, or scaled from another size by the area, or the usual ones."""
    size = model.preprocessing.size
    known = counted().get(model.backbone)
    if known is None:
        return Gflops(USUAL * (size / SIZE) ** 2, assumed=True)
    nearest = min(known, key=lambda one: abs(one - size))
    return Gflops(known[nearest] * (size / nearest) ** 2, assumed=False)
