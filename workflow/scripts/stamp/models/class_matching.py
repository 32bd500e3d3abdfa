"""Which output of a model is which class of the study, by name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stamp.core.errors import UserError


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def choose(outputs: Sequence[str], classes: Sequence[str], what: str) -> list[int | None]:
    """For each class the number of the output that is named after it, None where there is none.

    Names must be the study's own. An output that no class is named after is left out; one that
    differs from a class in spelling only is a mistake, and so is a name given twice.
    """
    spelled = {_letters(name): name for name in classes}
    for name in filter(None, outputs):
        meant = spelled.get(_letters(name), name)
        if meant != name:
            raise UserError(f"{what}: unknown class '{name}': did you mean '{meant}'?")
        if list(outputs).count(name) > 1:
            raise UserError(f"{what}: the output '{name}' is named twice")
    chosen = [list(outputs).index(name) if name in outputs else None for name in classes]
    if all(output is None for output in chosen):
        raise UserError(f"{what}: none of its outputs is a class of the study")
    return chosen


def lacking(chosen: Sequence[int | None]) -> tuple[int, ...]:
    """The numbers of the classes that no output is named after."""
    return tuple(number for number, output in enumerate(chosen) if output is None)
