"""Numbers as they are printed: what they may have been before they were rounded."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

SLACK = 1e-9  # two ranges that only touch have no number in common
_NUMBER = re.compile(
    r"(?P<relation><=|>=|<|>|~)?\s*(?P<sign>[+-])?(?P<digits>\d[\d,]*)?(?P<rest>\.\d+)?"
    r"(?P<ten>x?10\^(?P<power>[+-]?\d+))?"
)


@dataclass(frozen=True, slots=True)
class Printed:
    """A printed number: its relation, its value and half a unit of its last digit."""

    text: str
    relation: str
    value: float
    half: float
    decimals: int
    power: int | None

    @property
    def low(self) -> float:
        return self.value - self.half

    @property
    def high(self) -> float:
        return self.value + self.half

    def agrees(self, low: float, high: float | None = None) -> bool:
        """Whether a recomputed number, known to lie from ``low`` to ``high``, can print as this."""
        high = low if high is None else high
        if self.relation == "<":
            return low < self.value
        if self.relation == ">":
            return high > self.value
        if self.relation == "<=":
            return low <= self.high
        if self.relation == ">=":
            return high >= self.low
        slack = SLACK * max(self.half, abs(self.value) * 1e-6)
        # a number known exactly may lie on the border, where rounding goes either way
        touch = slack if high - low <= slack else -slack
        return low <= self.high + touch and high >= self.low - touch

    def shown(self, low: float, high: float) -> str:
        """A recomputed number, or its range, with one digit more than is printed."""
        tiny = 10 ** -(self.decimals + 1)
        small = any(value != 0 and abs(value) < tiny for value in (low, high))
        if self.power is not None or (small and self.relation):
            texts = [f"{value:.2e}" for value in (low, high)]
        elif self.decimals == 0 and float(low).is_integer() and float(high).is_integer():
            texts = [f"{value:,.0f}" for value in (low, high)]
        else:
            texts = [f"{value:,.{self.decimals + 1}f}" for value in (low, high)]
        return texts[0] if texts[0] == texts[1] else " to ".join(texts)


def number(text: str) -> Printed:
    """One printed number: ``0.855``, ``+.177``, ``<10^-10``, ``1.4x10^-13``, ``~3,379``."""
    found = _NUMBER.fullmatch(text.strip())
    if found is None or not (found["digits"] or found["rest"] or found["ten"]):
        raise ValueError(f"'{text}' is no printed number")
    rest = found["rest"] or ""
    digits, ten = (found["digits"] or "").replace(",", ""), found["ten"]
    mantissa = float(f"{digits or ('1' if not rest else '0')}{rest}")
    power = int(found["power"]) if ten else None
    scale = 10.0 ** (power or 0) * (-1 if found["sign"] == "-" else 1)
    decimals = max(len(rest) - 1, 0)
    half = 0.5 * 10.0 ** (-decimals + (power or 0))
    return Printed(text, found["relation"] or "", mantissa * scale, half, decimals, power)


def numbers(text: str) -> list[Printed]:
    """The numbers of a printed list or interval: ``[0.72, 0.92]``, ``21, 20, 20``."""
    return [number(part) for part in text.strip("[] ").split(", ")]


def corners(function: Callable[..., float], *inputs: Printed) -> tuple[float, float]:
    """The least and largest value of a function over the corners of its inputs' roundings.

    For a function that is monotone in each input these are its bounds over all that the printed
    inputs may have been.
    """
    found = [float(function(*corner)) for corner in product(*((p.low, p.high) for p in inputs))]
    return min(found), max(found)
