"""Make the embeddings of one model on images of the targets."""

from stamp.core.artifacts import read_table
from stamp.core.errors import run
from stamp.images.view_pixels import open_view
from stamp.inference.extra_outputs.job import ExtraOutputsJob
from stamp.inference.extra_outputs.manifest import TARGETS, write_precomputed
from stamp.inference.extra_outputs.selected_images import SelectedImages
from stamp.inference.logits import Execution
from stamp.inference.provenance import ModelFiles


def main(smk):
    params, files = smk.params, smk.input
    study, model = smk.wildcards.study, smk.wildcards.model
    if not all(params.pixels.values()):
        return write_precomputed(smk.output[0], model, study, params.kinds)
    views, opened = [], []
    for place, (target, file) in enumerate(zip(params.targets, files.views, strict=True)):
        views.append(read_table(file, study=study, view=target))
        name, how = f"study '{study}': view '{target}'", params.pixels[target]
        parts = (("pixels", files.pixels), ("record", files.records))
        own = {part: every[place] for part, every in parts if every}
        opened.append(open_view(views[-1], own, how, name, smk.threads))
    pixels = [one.pixels for one in opened]
    images = SelectedImages.of_targets(pixels, views, params.settings["images"], params.seed)
    job = ExtraOutputsJob(
        model=model,
        study=study,
        view=TARGETS,
        kinds=params.kinds,
        params=params,
        settings=params.settings,
        files=ModelFiles.of_job(files, params.files),
        execution=lambda: Execution.of_job(smk),
    )
    return job.run(smk.output[0], images, [one.digest for one in opened])


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
