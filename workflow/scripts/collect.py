"""Gather every model's scores and outcomes into two tables."""

from pathlib import Path

import polars as pl

from stamp.core.artifacts import read_json, read_table, write_table
from stamp.core.errors import run
from stamp.inference.provenance import same_weights
from stamp.report.outcomes import outcomes
from stamp.report.scoreboard import model_row, scoreboard


def main(smk):
    params, study = smk.params, smk.wildcards.study
    matched = [read_table(path) for path in smk.input.matched]
    of_model = pl.concat(matched) if matched else pl.DataFrame(schema={"model": pl.String})
    rows = [
        model_row(
            read_table(scores, model=model, study=study),
            read_json(calibration),
            of_model.filter(pl.col("model") == model),
            params.exclude,
            params.contaminated.get(model, ()),
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
    evaluations = pl.concat([read_table(path) for path in smk.input.evaluations])
    table = outcomes(evaluations, params.outcomes, params.relabelled)
    write_table(smk.output.evaluations, evaluations, {})
    write_table(smk.output.scores, scoreboard(rows), {"study": study})
    write_table(smk.output.outcomes, table, {"study": study})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
