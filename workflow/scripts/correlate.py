"""Correlate the scores with the outcomes, and say how sure the ranking is."""

import numpy as np

from stamp.core.artifacts import read_arrays, read_table, write_table
from stamp.core.errors import run
from stamp.report.correlate import correlations, outranking, ranks


def main(smk):
    params, study = smk.params, smk.wildcards.study
    board = read_table(smk.input.scores, study=study)
    tidy = read_table(smk.input.outcomes, study=study)
    models = board["model"].to_list()
    draws = np.stack(
        [
            read_arrays(path, model=model, study=study)["stamp"]
            for model, path in zip(models, smk.input.draws, strict=True)
        ]
    )
    found = correlations(board, tidy, params.settings, params.seed)
    write_table(smk.output.correlations, found, {})
    write_table(smk.output.ranks, ranks(models, draws, params.settings["level"]), {})
    write_table(smk.output.outranks, outranking(models, draws), {})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
