"""STAMP of one model: every kind of pair, with the draws that the ranking needs."""

import numpy as np

from stamp.core.artifacts import read_json, read_table, write_arrays, write_table
from stamp.core.errors import run
from stamp.inference.outputs import read_outputs
from stamp.inference.provenance import same_weights
from stamp.scoring.score import ScoreSettings, score_at_n_pairs, score_table


def main(smk):
    params, model, study = smk.params, smk.wildcards.model, smk.wildcards.study
    settings = ScoreSettings.from_params(params)
    source = read_outputs(smk.input.view, smk.input.logits, model)
    pairs = read_table(smk.input.pairs, study=study)
    fitted = read_json(smk.input.calibration)["value"]
    table, headline = score_table(source, pairs, settings, fitted, model, params.leaks)
    sweep = params.n_pairs_sweep
    by_number = score_at_n_pairs(source.only("pool"), pairs, settings, fitted, sweep, model)
    metadata = {"model": model, "study": study, "number": params.number}
    metadata |= same_weights([smk.input.logits, smk.input.calibration])
    write_table(smk.output.scores, table, metadata)
    write_table(smk.output.n_pairs, by_number, metadata)
    write_arrays(smk.output.draws, {"stamp": headline.draws.astype(np.float64)}, metadata)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
