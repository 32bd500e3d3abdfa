"""STAMP of one model over the classes that each domain of a target is labeled for."""

import polars as pl

from stamp.core.artifacts import read_json, read_table, write_table
from stamp.core.errors import run
from stamp.inference.outputs import read_outputs
from stamp.inference.provenance import same_weights
from stamp.scoring.class_matched_score import class_matched_scores
from stamp.scoring.score import ScoreSettings


def main(smk):
    params, model, study = smk.params, smk.wildcards.model, smk.wildcards.study
    settings = ScoreSettings.from_params(params)
    pool = read_outputs(smk.input.view, smk.input.logits, model).only("pool")
    pairs = read_table(smk.input.pairs, study=study)
    fitted = read_json(smk.input.calibration)["value"]
    table = class_matched_scores(pool, pairs, settings, fitted, params.matched, params.merge)
    common = {"model": model, "target": smk.wildcards.target}
    columns = [pl.lit(value).alias(name) for name, value in common.items()]
    metadata = {"study": study, **common}
    metadata |= same_weights([smk.input.logits, smk.input.calibration])
    write_table(smk.output[0], table.select(*columns, pl.all()), metadata)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
