"""STAMP of one model over the classes that each domain of a target is labeled for."""

import polars as pl

from stamp.core.artifacts import read_json, read_table, write_table
from stamp.core.errors import run
from stamp.inference.outputs import read_outputs
from stamp.scoring.score import Design, matched_rows


def main(smk):
    params, model, study = smk.params, smk.wildcards.model, smk.wildcards.study
    pool = read_outputs(smk.input.view, smk.input.logits, model).only("pool")
    pairs = read_table(smk.input.pairs, study=study)
    design = Design(**{name: params[name] for name in Design.__dataclass_fields__})
    temperature = read_json(smk.input.calibration)["value"] if params.scale else 1.0
    rows = matched_rows(pool, pairs, design, temperature, params.matched, params.merge)
    common = {"model": model, "target": smk.wildcards.target}
    table = pl.DataFrame([{**common, **row} for row in rows], infer_schema_length=None)
    write_table(smk.output[0], table, {"study": study, **common})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
