"""The images that a command's argument names: a data set, a study's source, a table or a folder."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from stamp.config.datasets import Dataset
from stamp.config.plan import Plan
from stamp.core.artifacts import read_table
from stamp.core.errors import UserError, suggest
from stamp.data.views import check_index


@dataclass(frozen=True, slots=True)
class Named:
    """An index and where it is from; ``help`` says how its images are got."""

    name: str
    index: pl.DataFrame
    root: Path
    border: int = 0
    help: str = ""


def read_options(texts: Sequence[str]) -> dict[str, Any]:
    """``key=value`` arguments as options of an adapter: ``splits={test: 1}``, ``order=Visit #``."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"--option {text}: expected key=value")
        found[key] = _value(value.strip(), text)
    return found


def _value(text: str, option: str) -> Any:
    """A value: YAML where it is a list, mapping, number or the like, else the text as it stands."""
    marked = text.startswith(("{", "[", '"', "'"))
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        if marked:
            raise UserError(f"--option {option}: the value is no YAML") from None
        return text  # such as `% slope`
    meant = found is not None or text in ("", "~", "null")
    return found if marked or (meant and isinstance(found, bool | int | float | None)) else text


def of_path(path: Path, options: Mapping[str, Any], seed: int) -> Named:
    """A table's file by the adapter ``csv``, a folder by the adapter ``folder``."""
    adapter, root, given = "folder", path, dict(options)
    if path.is_file():
        adapter, root, given = "csv", path.parent, {"table": path.name, **options}
    module = importlib.import_module(f"stamp.data.adapters.{adapter}")
    found = check_index(module.index(given, root, seed), str(path))
    return Named(str(path), found, root, help="")


def of_dataset(dataset: Dataset, plan: Plan, seed: int) -> Named:
    """A data set of the configuration; one that a rule makes is read from the results."""
    module = importlib.import_module(f"stamp.data.adapters.{dataset.adapter}")
    root = Path(dataset.root)
    if dataset.made:
        file = Path(plan.results) / "datasets" / dataset.key / "index.parquet"
        if not file.is_file():
            raise UserError(
                f"data set '{dataset.key}' is made by the workflow and not made yet: run "
                f"`snakemake --cores 2 {file}` first"
            )
        return Named(dataset.key, read_table(file), file.parent, dataset.border)
    found = check_index(module.index(dataset.options, root, seed), dataset.key)
    return Named(dataset.key, found, root, dataset.border, module.HELP)


def of_argument(argument: str, plan: Plan, options: Mapping[str, Any], seed: int) -> Named:
    """What an argument names: a file or a folder that is there, or a data set by its key."""
    if argument in plan.datasets:
        if options:
            raise UserError(
                f"--option is for a table or a folder; those of data set '{argument}' are in "
                f"{plan.folders.datasets}"
            )
        return of_dataset(plan.datasets[argument], plan, seed)
    if Path(argument).exists():
        return of_path(Path(argument), options, seed)
    studies = sorted(file.stem for file in Path(plan.folders.studies).glob("*.yaml"))
    known = suggest(argument, [*plan.datasets, *studies])
    raise UserError(f"'{argument}': no such file or folder, and no such data set or study: {known}")
