"""How long the analyses of a study as large as the paper's medical one take."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module
from time import perf_counter
from unittest.mock import patch

from benchmarks.made_up import metrics, study
from benchmarks.made_up_profiles import profiles
from benchmarks.row import Row
from stamp.config.registries.analyses import ANALYSES
from stamp.report.analyses.baselines import table as baselines
from stamp.report.analysis import why

MODELS, METRICS, TARGETS, DRAWS = 44, 25, 5, 10_000


def main() -> list[Row]:
    """Seconds of each analysis (its table, its models and its sentence) and of all together."""
    data = study(MODELS, TARGETS, DRAWS, DRAWS, metrics=metrics(METRICS))
    times, skipped = {}, []
    for name, analysis in ANALYSES.items():
        module, own = import_module(f"stamp.report.analyses.{name}.table"), data
        if analysis.profile:
            own = replace(data, profiles=profiles(analysis.profile, data.scores))
        start = perf_counter()
        with patch.object(baselines, "METRICS", metrics(METRICS)):
            table = module.table(own)
            module.models(own)
            module.sentence(table)
        if reason := why(table):
            skipped.append(f"{name} ({reason})")
            continue
        times[name] = perf_counter() - start
    if skipped:
        print(f"not measured: {'; '.join(skipped)}", file=sys.stderr, flush=True)
    of = f"{MODELS} models, {METRICS} metrics, {TARGETS} targets, {DRAWS:,} draws"
    rows = [Row(f"analysis {name}", seconds, "s") for name, seconds in times.items()]
    return [*rows, Row("all analyses of a study", sum(times.values()), "s", "< 30", of)]
