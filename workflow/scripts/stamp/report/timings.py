"""What a study's jobs cost: images forwarded and seconds, from Snakemake's own benchmark files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from stamp.core.artifacts import read_json

COLUMNS = {
    "model": pl.String,  # null for what is done once for all models
    "stage": pl.String,  # the rule: logits, calibrate, score, extra_outputs, metrics, ...
    "part": pl.String,  # the view or the kind of pass
    "images": pl.Int64,
    "seconds": pl.Float64,
}


def benchmark_seconds(path: str | Path) -> float:
    """The wall-clock seconds of a job, its start included; the mean where it was repeated."""
    table = pl.read_csv(path, separator="\t", null_values=["NA", "-"])
    return float(table["s"].cast(pl.Float64).mean())  # type: ignore[arg-type]


def view_size(path: str | Path) -> int:
    """How many images a view has, without reading them."""
    return int(pl.scan_parquet(path).select(pl.len()).collect().item())


def job_rows(
    stage: str,
    models: Iterable[str | None],
    files: Iterable[str | Path],
    parts: Iterable[str] | None = None,
    images: Mapping[str, int] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """One row per benchmark file of these models and parts; ``images`` are those of a part."""
    every = list(zip(models, files, strict=True))
    named = list(parts) if parts is not None else [None] * len(every)
    return [
        {
            "model": model,
            "stage": stage,
            "part": part,
            "images": images.get(part or "", 0),
            "seconds": benchmark_seconds(file),
        }
        for (model, file), part in zip(every, named, strict=True)
    ]


def extra_output_rows(
    manifests: Mapping[str, str | Path], stage: str = "extra_outputs"
) -> list[dict[str, Any]]:
    """One row per model and kind of extra output that is available, from the manifests."""
    return [
        {
            "model": model,
            "stage": stage,
            "part": kind,
            "images": entry["forwarded"],
            "seconds": entry["seconds"],
        }
        for model, file in manifests.items()
        for kind, entry in read_json(file)["extra_outputs"].items()
        if "reason" not in entry
    ]


def table(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """The rows as a table."""
    return pl.DataFrame(list(rows), schema=COLUMNS)
