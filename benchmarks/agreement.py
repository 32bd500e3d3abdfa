"""Agreement on the line for up to 1,000 models: CPU seconds and peak memory, each in its process.

Beside it the solution for ALine-D's members by the dense design with one row per pair of models,
for the numbers of models whose design fits into a few hundred megabytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np
import polars as pl

from benchmarks.child import python
from benchmarks.memory import resident
from benchmarks.row import Row

MODELS, DENSE = (44, 200, 500, 1_000), (44, 200, 500)
SOURCE, TARGET, CLASSES, DOMAINS = 2_000, 4_000, 8, 4
CHILD = """
import sys
from pathlib import Path
from benchmarks import agreement
print(*getattr(agreement, sys.argv[1])(*map(agreement.given, sys.argv[2:])))
"""


def given(argument: str) -> Path | int:
    """A number or a folder."""
    return int(argument) if argument.isdigit() else Path(argument)


def write_models(folder: Path, task: str, models: int) -> int:
    """The decisions of made-up models as their jobs keep them; the bytes of one file."""
    from stamp.metrics.decisions import decided, write_decisions
    from stamp.metrics.inputs import ScaledOutputs, TargetDomains, TargetOutputs

    rng = np.random.default_rng(0)
    n = SOURCE + TARGET
    truth = rng.integers(0, CLASSES, n) if task == "multiclass" else rng.random((n, CLASSES)) < 0.2
    hot = truth[:, None] == np.arange(CLASSES) if task == "multiclass" else truth
    where = TargetDomains(domains())
    for number in range(models):
        z = (0.5 + 2 * rng.random()) * hot + rng.normal(size=(n, CLASSES))
        here, there = (
            ScaledOutputs.of(z[part], truth[part].astype(float), task, 1.0)
            for part in (slice(SOURCE), slice(SOURCE, n))
        )
        found = decided(here, {"far": TargetOutputs(there, where)}, degenerate=False)
        write_decisions(folder / str(number), found, {"model": str(number)})
    return (folder / "0").stat().st_size


def domains() -> pl.Series:
    """The domain of each target image."""
    return pl.Series([f"d{number % DOMAINS}" for number in range(TARGET)])


def lines(folder: Path, models: int) -> tuple[float, float, float]:
    """CPU seconds of the whole aggregate, resident MB before it, and at its peak."""
    from stamp.metrics.agreement_on_the_line import line_table
    from stamp.metrics.decisions import Decisions, read_decisions
    from stamp.metrics.inputs import TargetDomains

    def kept() -> Iterator[tuple[str, Decisions]]:
        for number in range(models):
            yield str(number), read_decisions(folder / str(number), "far", model=str(number))

    before, began = resident("VmRSS"), process_time()
    line_table("far", TargetDomains(domains()), kept(), CLASSES)
    return process_time() - began, before, resident("VmHWM")


def made_up_pairs(models: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every pair of models, with an average each."""
    first, second = np.triu_indices(models, k=1)
    averages = np.random.default_rng(1).normal(size=len(first))
    return first, second, averages


def direct(models: int) -> tuple[float, float]:
    """CPU seconds of the members from the normal matrix, and resident MB at the peak."""
    from stamp.stats.on_the_line import _members

    pairs = made_up_pairs(models)
    began = process_time()
    _members(*pairs, models)
    return process_time() - began, resident("VmHWM")


def dense(models: int) -> tuple[float, float]:
    """The same from a design with one row per pair."""
    first, second, averages = made_up_pairs(models)
    began = process_time()
    design = np.zeros((len(first), models))
    rows = np.arange(len(design))
    design[rows, first] = design[rows, second] = 0.5
    normal = design.T @ design
    inverse = np.linalg.pinv(normal, rcond=1e-10, hermitian=True)
    np.where(np.diag(inverse @ normal) > 1 - 1e-6, inverse @ (design.T @ averages), np.nan)
    return process_time() - began, resident("VmHWM")


def main() -> list[Row]:
    """The aggregate for each task and number of models, then both ways to solve for members."""
    rows = []
    for task in ("multiclass", "multilabel"):
        with TemporaryDirectory() as name:
            size = write_models(Path(name), task, MODELS[-1])
            for models in MODELS:
                cpu, before, peak = map(float, python(CHILD, "lines", name, str(models)).split())
                note = (
                    f"peak {peak:,.0f} MB, {before:.0f} before it; {size / 1e3:,.0f} kB per model"
                )
                what = f"ALine, {models:,} models, {task}, {DOMAINS + 1} domains"
                rows.append(Row(what, cpu, "CPU s", "< 60 s, < 2,000 MB", note))
    for models in MODELS:
        cpu, peak = map(float, python(CHILD, "direct", str(models)).split())
        note = f"peak {peak:,.0f} MB"
        if models in DENSE:
            old, most = map(float, python(CHILD, "dense", str(models)).split())
            note += f"; dense design {old:.3g} CPU s, {most:,.0f} MB"
        rows.append(Row(f"ALine-D's members, {models:,} models", cpu, "CPU s", "", note))
    return rows
