"""STAMP of one model: every kind of pair, with the draws that the ranking needs."""

import numpy as np
import polars as pl

from stamp.errors import run
from stamp.io import read_json, read_table, write_arrays, write_table
from stamp.outputs import present, read_outputs
from stamp.scoring import Design, as_row, score_counts, score_kinds


def main(smk):
    params, model, study = smk.params, smk.wildcards.model, smk.wildcards.study
    source = read_outputs(smk.input.view, smk.input.logits, model)
    pairs = read_table(smk.input.pairs, study=study)
    design = Design(**{name: params[name] for name in Design.__dataclass_fields__})
    temperature = read_json(smk.input.calibration)["value"]
    pool = source.only("pool")
    found = list(score_kinds(pool, pairs, design, temperature, params.scale))
    there = zip(params.classes, present(source.logits), strict=True)
    missing = ", ".join(name for name, has_output in there if not has_output)
    common = {
        "model": model,
        "parameters": source.parameters,
        "leakage": params.leaks,
        "missing": missing or None,
    }
    table = pl.DataFrame(
        [{**common, **what, **as_row(score)} for what, score in found], infer_schema_length=None
    )
    provenance = {"model": model, "study": study, "number": params.number}
    write_table(smk.output.scores, table, provenance)
    used = found[0][0]["temperature"]
    counts = score_counts(pool, pairs, design, used, params.counts, model)
    write_table(smk.output.counts, counts, provenance)
    headline = found[0][1].draws.astype(np.float64)
    write_arrays(smk.output.draws, {"stamp": headline}, provenance)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
