"""The other predictors of one model, and its decisions, from the files of its rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from stamp.core.artifacts import read_json, read_table
from stamp.inference.outputs import present, read_outputs
from stamp.inference.provenance import same_weights
from stamp.metrics import inputs
from stamp.metrics.decisions import Decisions, decided
from stamp.metrics.from_extra_outputs import ExtraInputs, TargetEmbeddings
from stamp.metrics.metrics import in_order, metric_table
from stamp.metrics.stress_tests import StressOutputs, StressTable
from stamp.metrics.value import DEGENERATE


@dataclass(frozen=True, slots=True)
class ModelMetrics:
    """A table of metrics, what agreement needs of the model, and what both were made from."""

    table: pl.DataFrame
    decisions: dict[str, Decisions]  # by target
    made_from: dict[str, str]


def model_metrics(files: Any, params: Any, model: str, study: str) -> ModelMetrics:
    """Everything is from outputs that are there already: no model is run.

    ``files`` and ``params`` are those of the rule ``metrics``.
    """
    temperature = read_json(files.calibration)["value"] if params.scale else 1.0
    view = read_outputs(files.view, files.logits, model)
    pool, pairs = view.only("pool"), read_table(files.pairs, study=study)
    there, images = present(pool.logits), pool.rows["image"]
    settings = inputs.OutputSettings(params.classes, there, params.task, temperature)
    theirs = inputs.target_files(files, params)
    found = inputs.ModelOutputs.read(pool, theirs, model, settings)
    ids = {name: found.targets[name].images for name in params.targets}
    extra = ExtraInputs(
        manifest=files.get("extra_outputs") or None,
        view=view.rows,
        semantic=inputs.first_pairs(pairs, params.semantic, params.number, images),
        random=inputs.first_pairs(pairs, "random", params.number, images),
        source=found.source,
        there=there,
        target_embeddings=TargetEmbeddings(files.get("target_embeddings") or None, ids),
        exact_total=inputs.exact_total(found.source.p, pool.rows, pairs, params),
    )
    table = metric_table(found.source, found.targets, extra, params.wanted)
    if stress := files.get("stress_tests"):
        tests = StressTable(
            outputs=StressOutputs.read(stress, view),
            settings=settings,
            total=extra.total,
            broken=DEGENERATE if extra.degenerate else "",
            minimum=params.minimum,
        )
        where = {name: one.where for name, one in found.targets.items()}
        stressed = tests.rows(theirs, where).filter(pl.col("metric").is_in(params.wanted))
        table = in_order(pl.concat([table, stressed]))
    if not there.all():  # agreement is over the same classes for all models
        found = inputs.ModelOutputs.read(pool, theirs, model, settings.of_all_classes)
    extras = [
        file for file in (extra.manifest, extra.target_embeddings.manifest, stress or None) if file
    ]
    outputs = [files.logits, files.calibration, *(one.outputs for one in theirs.values()), *extras]
    return ModelMetrics(
        table=table.select(pl.lit(model).alias("model"), pl.all()),
        decisions=decided(found.source, found.targets, extra.degenerate),
        made_from={"model": model, "study": study, **same_weights(outputs)},
    )
