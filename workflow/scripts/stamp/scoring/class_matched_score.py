"""STAMP of one model over the classes that each domain of a target is labeled for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from stamp.inference.outputs import Outputs, merged, present
from stamp.scoring.score import ScoreSettings, as_row, score_pool


def class_matched_scores(
    pool: Outputs,
    pairs: pl.DataFrame,
    settings: ScoreSettings,
    temperature: float,
    matched: Mapping[str, Sequence[str]],
    merge: Mapping[str, Sequence[str]],
) -> pl.DataFrame:
    """One row per domain: the headline score over the classes that the domain is labeled for.

    ``temperature`` is the fitted one. A merged class is one output, the largest of its parts'. A
    model that has an output for none of the classes has no score there.
    """
    names = [*settings.classes, *merge]
    outputs = Outputs(pool.rows, merged(pool.logits, settings.classes, merge), pool.parameters)
    there, used = present(outputs.logits), settings.temperature(temperature)
    rows = []
    for domain, wanted in matched.items():
        columns = [names.index(name) for name in wanted]
        row: dict[str, Any] = {"domain": domain, "classes": ", ".join(wanted), "stamp": None}
        if there[columns].any():
            row |= as_row(score_pool(outputs, pairs, settings.semantic, settings, used, columns))
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)
