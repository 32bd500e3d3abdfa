"""STAMP of one model: every kind of pair, with the draws that the ranking needs."""

import numpy as np

from stamp.core.artifacts import read_json, read_table, write_arrays, write_table
from stamp.core.errors import run
from stamp.inference.outputs import read_outputs
from stamp.scoring.score import Design, score_counts, score_table


def main(smk):
    params, model, study = smk.params, smk.wildcards.model, smk.wildcards.study
    source = read_outputs(smk.input.view, smk.input.logits, model)
    pairs = read_table(smk.input.pairs, study=study)
    design = Design(**{name: params[name] for name in Design.__dataclass_fields__})
    temperature = read_json(smk.input.calibration)["value"]
    how = (temperature, params.scale, model, params.leaks)
    table, headline = score_table(source, pairs, design, *how)
    provenance = {"model": model, "study": study, "number": params.number}
    write_table(smk.output.scores, table, provenance)
    used = temperature if params.scale else 1.0
    counts = score_counts(source.only("pool"), pairs, design, used, params.counts, model)
    write_table(smk.output.counts, counts, provenance)
    write_arrays(smk.output.draws, {"stamp": headline.draws.astype(np.float64)}, provenance)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
