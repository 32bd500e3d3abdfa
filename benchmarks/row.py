"""One measurement, and a table of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured, the number with its unit, what it should be, and how it came about."""

    what: str
    value: float
    unit: str = ""
    target: str = ""
    note: str = ""

    @property
    def measured(self) -> str:
        """The value as text with three significant digits and its unit."""
        number = f"{self.value:,.0f}" if abs(self.value) >= 100 else f"{self.value:.3g}"
        return f"{number} {self.unit}".strip()


def table(rows: Sequence[Row]) -> str:
    """Aligned columns: what, measured, target, note."""
    cells = [(row.what, row.measured, row.target, row.note) for row in rows]
    lines = [("what", "measured", "target", "note"), *cells]
    what, measured, target = (max(len(line[column]) for line in lines) for column in range(3))
    texts = [
        f"{line[0]:<{what}} | {line[1]:>{measured}} | {line[2]:<{target}} | {line[3]}".rstrip()
        for line in lines
    ]
    rule = "-|-".join("-" * width for width in (what, measured, target, 4))
    return "\n".join([texts[0], rule, *texts[1:]])
