"""Take one model's logits on one view from the user's file: no torch, no pixels."""

import polars as pl

from stamp.core.artifacts import write_arrays
from stamp.core.errors import UserError, run
from stamp.models.loaders.precomputed import logits_of, metadata_of


def main(smk):
    params, model, view = smk.params, smk.wildcards.model, smk.wildcards.view
    ids = pl.read_parquet(smk.input.view, columns=["image"])["image"]
    try:
        logits = logits_of(params.load, view, ids, params.classes, params.task)
    except UserError as mistake:
        raise UserError(f"model '{model}': {mistake}") from None
    write_arrays(smk.output[0], {"logits": logits}, metadata_of(model, view, params.load, ids))


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
