"""Make the embeddings of one model on images of the targets."""

from pathlib import Path

from stamp.core.artifacts import read_table
from stamp.core.device import claim
from stamp.core.errors import run
from stamp.images.pixel_cache import PixelCache
from stamp.inference.extra_outputs.job import ExtraOutputsJob
from stamp.inference.extra_outputs.manifest import TARGETS, write_precomputed
from stamp.inference.extra_outputs.registry import EXTRA_OUTPUTS
from stamp.inference.extra_outputs.selected_images import SelectedImages
from stamp.inference.provenance import ModelFiles


def main(smk):
    params, files = smk.params, smk.input
    study, model = smk.wildcards.study, smk.wildcards.model
    if not files.get("pixels"):
        return write_precomputed(smk.output[0], model, study, params.kinds)
    named = zip(params.targets, files.views, strict=True)
    views = [read_table(file, study=study, view=name) for name, file in named]
    parts = zip(files.pixels, files.records, views, strict=True)
    caches = [PixelCache(Path(file), Path(record), view["image"]) for file, record, view in parts]
    images = SelectedImages.of_targets(caches, views, params.settings["images"], params.seed)
    job = ExtraOutputsJob(
        model=model,
        study=study,
        view=TARGETS,
        kinds=params.kinds,
        known=EXTRA_OUTPUTS,
        params=params,
        settings=params.settings,
        files=ModelFiles.of_job(files, params.files),
        device=lambda: claim(smk.resources),
        threads=smk.threads,
    )
    return job.run(smk.output[0], images, files.records)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
