"""Run one model over a target that is too large for a pixel cache, one prediction per image."""

from pathlib import Path

from stamp.core.errors import UserError, run
from stamp.inference.logits import Execution
from stamp.inference.predictions import StreamedTarget, stream
from stamp.inference.provenance import ModelFiles
from stamp.inference.stream_models import StreamedModel


def main(smk):
    params, files = smk.params, ModelFiles.of_job(smk.input, smk.params.files)
    execution = Execution.of_job(smk)
    streamed = StreamedTarget.of_job(smk.input.view, params)
    model = StreamedModel(smk.wildcards.model, Path(smk.output[0]), files, params)
    own = model.run(streamed, execution)
    for mistake in stream([own], streamed, execution).values():
        raise UserError(mistake)
    own.write()


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
