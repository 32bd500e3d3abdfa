"""STAMP of one model: every kind of pair, with the draws that the ranking needs."""

import numpy as np

from stamp.core.artifacts import read_json, read_table, write_arrays, write_table
from stamp.core.errors import run
from stamp.inference.outputs import read_outputs
from stamp.scoring.score import Design, score_at_n_pairs, score_table


def main(smk):
    params, model, study = smk.params, smk.wildcards.model, smk.wildcards.study
    source = read_outputs(smk.input.view, smk.input.logits, model)
    pairs = read_table(smk.input.pairs, study=study)
    design = Design(**{name: params[name] for name in Design.__dataclass_fields__})
    temperature = read_json(smk.input.calibration)["value"]
    how = (temperature, params.scale, model, params.leaks)
    table, headline = score_table(source, pairs, design, *how)
    metadata = {"model": model, "study": study, "number": params.number}
    write_table(smk.output.scores, table, metadata)
    used = temperature if params.scale else 1.0
    by_number = score_at_n_pairs(
        source.only("pool"), pairs, design, used, params.n_pairs_sweep, model
    )
    write_table(smk.output.n_pairs, by_number, metadata)
    write_arrays(smk.output.draws, {"stamp": headline.draws.astype(np.float64)}, metadata)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
