"""Take one model's predictions on a streamed target from the user's file: no torch, no pixels."""

import numpy as np
import polars as pl

from stamp.core.artifacts import write_arrays
from stamp.core.errors import UserError, run
from stamp.data.views import scored_classes
from stamp.inference.outputs import PREDICTION_COLUMNS, predictions_of
from stamp.inference.provenance import ModelFiles
from stamp.inference.streamed_sample import packed, sampled_rows
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
    if np.isnan(logits).any():
        raise UserError(f"model '{model}': a streamed target needs an output for every class")
    among = scored_classes(params.among, params.classes, smk.input.view)
    made_from = metadata_of(model, view, params.load, ids, params.files)
    predictions = predictions_of(logits, among).astype(np.float32)
    rows = sampled_rows(smk.input.view)
    write_arrays(
        smk.output[0],
        {"predictions": predictions, **packed(logits[rows], rows)},
        {**made_from, "columns": ",".join(PREDICTION_COLUMNS)},
    )


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
