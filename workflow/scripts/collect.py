"""Gather every model's scores and outcomes into two tables."""

import sys
from pathlib import Path

import polars as pl

from stamp.config.view_names import SOURCE
from stamp.core.artifacts import read_json, read_table, write_table
from stamp.core.errors import run
from stamp.inference.provenance import same_weights
from stamp.report.outcomes import outcomes
from stamp.report.scoreboard import Declared, counted_twice, model_row, scoreboard
from stamp.scoring.evaluate import INFLUENCE


def main(smk):
    params, study = smk.params, smk.wildcards.study
    matched = [read_table(path) for path in smk.input.matched]
    of_model = pl.concat(matched) if matched else pl.DataFrame(schema={"model": pl.String})
    parts = [read_table(path) for path in smk.input.evaluations]
    evaluations = pl.concat(parts, how="diagonal")  # only the source's have influences
    at_home = evaluations.filter(pl.col("view") == SOURCE)
    met, seen, aside = params.contaminated, params.trained_on, params.for_reference
    rows = [
        model_row(
            read_table(scores, model=model, study=study),
            read_json(calibration),
            of_model.filter(pl.col("model") == model),
            at_home.filter(pl.col("model") == model),
            Declared(
                params.exclude, params.level, met.get(model, ()), seen[model], aside.get(model)
            ),
        )
        for model, scores, calibration in zip(
            params.models, smk.input.scores, smk.input.calibrations, strict=True
        )
    ]
    results = [
        *smk.input.scores,
        *smk.input.calibrations,
        *smk.input.matched,
        *smk.input.evaluations,
    ]
    for model in params.models:  # a row never mixes one model's numbers with its successor's
        same_weights([path for path in results if Path(path).stem == model])
    board = scoreboard(rows)
    for line in counted_twice(board):
        print(f"stamp: warning: study '{study}': {line}", file=sys.stderr)
    table = outcomes(evaluations, params.outcomes, params.relabelled)
    write_table(smk.output.evaluations, evaluations.drop(*INFLUENCE), {})
    write_table(smk.output.scores, board, {"study": study})
    write_table(smk.output.outcomes, table, {"study": study})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
