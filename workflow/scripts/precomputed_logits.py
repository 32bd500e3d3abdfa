"""Take one model's logits on one view from the user's file: no torch, no pixels."""

import polars as pl

from stamp.core.artifacts import write_arrays
from stamp.core.errors import UserError, run
from stamp.inference.provenance import ModelFiles
from stamp.models.loaders.precomputed import logits_of, metadata_of


def main(smk):
    params, model, view = smk.params, smk.wildcards.model, smk.wildcards.view
    files = ModelFiles.of_job(smk.input, params.files)
    ids = pl.read_parquet(smk.input.view, columns=["image"])["image"]
    try:
        logits = logits_of(params.load, view, ids, params.classes, params.task)
    except UserError as mistake:
        raise UserError(f"model '{model}': {mistake}") from None
    files.check()
    metadata = metadata_of(model, view, params.load, ids, params.files)
    write_arrays(smk.output[0], {"logits": logits}, metadata)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
