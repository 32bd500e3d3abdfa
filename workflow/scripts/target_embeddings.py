"""Extra inference outputs of one model on the images of the targets."""

from pathlib import Path

from stamp.core.artifacts import read_table
from stamp.core.device import claim
from stamp.core.errors import run
from stamp.images.pixel_cache import PixelCache
from stamp.inference.extra_outputs.extraction import Images
from stamp.inference.extra_outputs.job import Job, write_none
from stamp.inference.extra_outputs.manifest import TARGETS


def main(smk):
    params, files = smk.params, smk.input
    study, model = smk.wildcards.study, smk.wildcards.model
    if not files.get("pixels"):
        return write_none(smk.output[0], model, study, params.kinds)
    weights = (files.get("weights") or None, files.get("backbone") or None)
    how = (params, params.settings, *weights, lambda: claim(smk.resources), smk.threads)
    job = Job(model, study, TARGETS, params.kinds, *how)
    named = zip(params.targets, files.views, strict=True)
    views = [read_table(file, study=study, view=name) for name, file in named]
    parts = zip(files.pixels, files.records, views, strict=True)
    caches = [PixelCache(Path(file), Path(record), view["image"]) for file, record, view in parts]
    images = Images.of_targets(caches, views, params.settings["images"], params.seed)
    return job.run(smk.output[0], images, files.records)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
