"""Run one model on labeled source images under each change of the study's stress tests."""

from pathlib import Path

from stamp.core.artifacts import read_table
from stamp.core.device import claim
from stamp.core.errors import run
from stamp.data.views import labels
from stamp.images.pixel_cache import PixelCache
from stamp.inference.extra_outputs.job import ExtraOutputsJob
from stamp.inference.extra_outputs.manifest import SOURCE, write_precomputed
from stamp.inference.extra_outputs.selected_images import SelectedImages
from stamp.inference.extra_outputs.stress_tests import settings, stress_tests
from stamp.inference.provenance import ModelFiles


def main(smk):
    params, files, study, model = smk.params, smk.input, smk.wildcards.study, smk.wildcards.model
    if not files.get("pixels"):
        return write_precomputed(smk.output[0], model, study, params.changes)
    view = read_table(files.view, study=study, view=SOURCE)
    truth = labels(view, params.task, params.classes, "stress tests")
    cache = PixelCache(Path(files.pixels), Path(files.record), view["image"])
    images = SelectedImages.of_labeled(cache, view, truth, params.split, params.images)
    job = ExtraOutputsJob(
        model=model,
        study=study,
        view=SOURCE,
        kinds=list(params.changes),
        known=stress_tests(list(params.changes)),
        params=params,
        settings=settings(params.changes, params.images),
        files=ModelFiles.of_job(files, params.files),
        device=lambda: claim(smk.resources),
        threads=smk.threads,
    )
    return job.run(smk.output[0], images, [files.record])


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
