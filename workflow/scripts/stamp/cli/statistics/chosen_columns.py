"""The columns of somebody else's table under the names that `statistics` reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from stamp.core.errors import UserError, suggest

MATCHED = "source:"  # column of the class-matched source metric of a target
Rows = list[list[str]]


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """Which columns are what; a name may hold ``*``, and several make their mean (``score``)."""

    score: Sequence[str] = ()
    source: str = ""
    targets: Sequence[str] = ()
    matched: Mapping[str, str] = field(default_factory=dict)  # column of a target's source metric
    percent: bool = False  # numbers are divided by 100
    skip: bool = False  # models without every value, or with those of another, are left out

    @property
    def asked(self) -> bool:
        """Whether any column is chosen."""
        return bool(self.score or self.source or self.targets or self.matched)


def chosen(
    path: str | Path, header: Sequence[str], rows: Rows, choice: ColumnChoice
) -> tuple[list[str], Rows]:
    """The chosen columns with their new names; without a choice, all of them as they are."""
    if not choice.asked:
        return list(header), rows
    columns = _columns(path, header, choice)
    place = {name: at for at, name in enumerate(header)}
    _named(path, header, "model")
    found: Rows = []
    for row in rows:
        model = row[place["model"]]
        cells = [
            _cell(path, model, [(name, row[place[name]]) for name in names], choice)
            for names in columns.values()
        ]
        if choice.skip and ("" in cells or any(cells == other[1:] for other in found)):
            continue
        found.append([model, *cells])
    return ["model", *columns], found


def _columns(path: str | Path, header: Sequence[str], choice: ColumnChoice) -> dict[str, list[str]]:
    """The columns behind each new name; those that are not chosen keep theirs."""
    score = [name for pattern in choice.score or ["score"] for name in _like(path, header, pattern)]
    columns = {"score": list(dict.fromkeys(score))}
    columns["source_metric"] = [_named(path, header, choice.source or "source_metric")]
    taken = {"model", *columns["score"], *columns["source_metric"], *choice.matched.values()}
    for target in choice.targets or [name for name in header if name not in taken]:
        columns[target] = [_named(path, header, target)]
    for target, name in choice.matched.items():
        if target not in columns:
            raise UserError(f"{path}: --matched {target}: no such target: {_hint(target, columns)}")
        columns[f"{MATCHED}{target}"] = [_named(path, header, name)]
    return columns


def _like(path: str | Path, header: Sequence[str], pattern: str) -> list[str]:
    found = [name for name in header if fnmatchcase(name, pattern)]
    if not found:
        raise UserError(f"{path}: no column '{pattern}': {suggest(pattern, header)}")
    return found


def _named(path: str | Path, header: Sequence[str], name: str) -> str:
    if name not in header:
        raise UserError(f"{path}: no column '{name}': {suggest(name, header)}")
    return name


def _hint(name: str, columns: Mapping[str, list[str]]) -> str:
    return suggest(name, [one for one in columns if one not in ("score", "source_metric")])


def _cell(
    path: str | Path, model: str, cells: Sequence[tuple[str, str]], choice: ColumnChoice
) -> str:
    """The mean of some cells as text, empty where one of them is."""
    if any(not cell for _, cell in cells):
        return ""
    if len(cells) == 1 and not choice.percent:
        return cells[0][1]
    numbers = []
    for name, cell in cells:
        try:
            numbers.append(float(cell))
        except ValueError:
            raise UserError(
                f"{path}: model '{model}', column '{name}': '{cell}' is not a number"
            ) from None
    return repr(sum(numbers) / len(numbers) / (100 if choice.percent else 1))
