"""Run several models over a streamed target together; each one's own job ends what is kept here."""

from pathlib import Path

from stamp.core.artifacts import write_json
from stamp.core.errors import run
from stamp.inference.logits import Execution
from stamp.inference.predictions import StreamedTarget
from stamp.inference.provenance import ModelFiles
from stamp.inference.stream_models import StreamedModel, stream_together


def main(smk):
    params, folder = smk.params, Path(smk.params.folder)
    models = []
    for name, own in params.models.items():
        files = ModelFiles.of_job(own, own["files"])
        target = folder / f"{name}.safetensors"
        models.append(StreamedModel(name, target, files, {**params.shared, **own}))
    streamed = StreamedTarget.of_job(smk.input.view, params.shared)
    if params.most > 1:
        stream_together(models, streamed, Execution.of_job(smk), params.most)
    write_json(smk.output[0], {"models": sorted(params.models)})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
