"""STAMP of one model for every kind of pair, its bootstrap draws, and examples of its pairs."""

import numpy as np

from stamp.core import artifacts
from stamp.core.errors import run
from stamp.inference.outputs import read_outputs
from stamp.inference.provenance import same_weights
from stamp.scoring.pair_examples import pair_examples
from stamp.scoring.score import ScoreSettings, score_at_n_pairs, score_table


def main(smk):
    params, model, study = smk.params, smk.wildcards.model, smk.wildcards.study
    settings = ScoreSettings.from_params(params)
    source = read_outputs(smk.input.view, smk.input.logits, model)
    pairs = artifacts.read_table(smk.input.pairs, study=study)
    fitted = artifacts.read_json(smk.input.calibration)["value"]
    table, headline = score_table(source, pairs, settings, fitted, model, params.leaks)
    pool, sweep = source.only("pool"), params.n_pairs_sweep
    by_number = score_at_n_pairs(pool, pairs, settings, fitted, sweep, model)
    draws = {"stamp": headline.draws.astype(np.float64)}
    examples = {"made_with": artifacts.array_metadata(smk.input.logits)}
    examples |= pair_examples(pool, pairs, settings, fitted)
    metadata = {"model": model, "study": study, "number": params.number}
    metadata |= same_weights([smk.input.logits, smk.input.calibration])
    artifacts.write_table(smk.output.scores, table, metadata)
    artifacts.write_table(smk.output.n_pairs, by_number, metadata)
    artifacts.write_arrays(smk.output.draws, draws, metadata)
    artifacts.write_json(smk.output.examples, {"model": model, "study": study, **examples})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
