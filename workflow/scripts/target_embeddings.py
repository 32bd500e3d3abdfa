"""Make the embeddings of one model on images of the targets."""

from stamp.core.artifacts import read_table
from stamp.core.errors import run
from stamp.images.view_pixels import open_views
from stamp.inference.extra_outputs.job import ExtraOutputsJob
from stamp.inference.extra_outputs.manifest import TARGETS, write_precomputed
from stamp.inference.extra_outputs.registry import EXTRA_OUTPUTS
from stamp.inference.extra_outputs.selected_images import SelectedImages
from stamp.inference.logits import Execution
from stamp.inference.provenance import ModelFiles


def main(smk):
    params, files = smk.params, smk.input
    study, model = smk.wildcards.study, smk.wildcards.model
    if not all(params.pixels.values()):
        return write_precomputed(smk.output[0], model, study, params.kinds)
    named = zip(params.targets, files.views, strict=True)
    views = {name: read_table(file, study=study, view=name) for name, file in named}
    caches = {"pixels": files.pixels, "record": files.records}
    opened = open_views(views, caches, params.pixels, study, smk.threads)
    pixels, count = [one.pixels for one in opened], params.settings["images"]
    images = SelectedImages.of_targets(pixels, list(views.values()), count, params.seed)
    job = ExtraOutputsJob(
        model=model,
        study=study,
        view=TARGETS,
        kinds=params.kinds,
        known=EXTRA_OUTPUTS,
        params=params,
        settings=params.settings,
        files=ModelFiles.of_job(files, params.files),
        execution=lambda: Execution.of_job(smk),
    )
    return job.run(smk.output[0], images, [one.digest for one in opened])


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
