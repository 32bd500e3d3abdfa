"""One further analysis of a study: its table, what each model brings to it, and a sentence."""

from importlib import import_module

import polars as pl

from stamp.analyses import EVALUATIONS, Data
from stamp.errors import run
from stamp.io import read_json, read_table, whole, write_table
from stamp.metrics.registry import COLUMNS as METRICS
from stamp.scoring import COUNTS


def main(smk):
    params, study = smk.params, smk.wildcards.study
    counts = [read_table(path, study=study) for path in smk.input.counts]
    records = [read_json(path) for path in smk.input.calibrations]
    metrics = [read_table(path, study=study) for path in smk.input.metrics]
    evaluations = [
        pl.read_csv(path, columns=list(EVALUATIONS), schema_overrides=EVALUATIONS)
        for path in smk.input.evaluations
    ]
    data = Data(
        scores=read_table(smk.input.scores, study=study),
        outcomes=read_table(smk.input.outcomes, study=study),
        evaluations=pl.concat(evaluations or [pl.DataFrame(schema=EVALUATIONS)]),
        counts=pl.concat(counts or [pl.DataFrame(schema=COUNTS)]),
        calibrations={record["model"]: record for record in records},
        metrics=pl.concat(metrics or [pl.DataFrame(schema={"model": pl.String, **METRICS})]),
        models=params.models,
        texts=params.texts,
        settings=params.settings,
        seed=params.seed,
    )
    module = import_module(f"stamp.analyses.{smk.wildcards.analysis}")
    table = module.table(data)
    write_table(smk.output.csv, table, {})
    write_table(smk.output.models, module.models(data), {})
    with whole(smk.output.text) as part:
        part.write_text(module.sentence(table) + "\n")


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
