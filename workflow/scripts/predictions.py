"""Run one model over a target that is too large for a pixel cache, one prediction per image."""

from pathlib import Path

from stamp.config.preprocessing import Preprocessing
from stamp.core.device import claim
from stamp.core.errors import run
from stamp.data.views import scored_classes
from stamp.inference.logits import Execution, metadata_of
from stamp.inference.predictions import StreamedTarget, extract_predictions
from stamp.inference.provenance import ModelFiles
from stamp.models.loaders.registry import load_named


def main(smk):
    params, model, files = smk.params, smk.wildcards.model, smk.input
    execution = Execution(claim(smk.resources), smk.threads)
    own = ModelFiles.of_job(files, params.files)
    made_from = {part: params[part] for part in ("load", "versions", "classes", "content", "code")}
    made_from["weights"] = list(own.digests.values())
    streamed = StreamedTarget(
        view=Path(files.view),
        preprocessing=Preprocessing(**params.preprocessing),
        classes=len(params.classes),
        among=scored_classes(params.among, params.classes, files.view),
        border=params.border,
    )
    loaded = load_named(model, params.load, params.classes, own.weights)
    own.check()
    metadata = metadata_of(model, smk.wildcards.view, params.load, own.card)
    target = Path(smk.output[0])
    extract_predictions(target, streamed, loaded, metadata, execution, made_from)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
