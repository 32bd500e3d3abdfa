"""Run one model on labeled source images under each change of the study's stress tests."""

from stamp.core.artifacts import read_table
from stamp.core.errors import run
from stamp.data.views import labels
from stamp.images.view_pixels import open_view
from stamp.inference.extra_outputs.job import ExtraOutputsJob
from stamp.inference.extra_outputs.manifest import SOURCE, write_precomputed
from stamp.inference.extra_outputs.selected_images import SelectedImages
from stamp.inference.extra_outputs.stress_tests import settings, stress_tests
from stamp.inference.logits import Execution
from stamp.inference.provenance import ModelFiles


def main(smk):
    params, files, study, model = smk.params, smk.input, smk.wildcards.study, smk.wildcards.model
    if not params.pixels:
        return write_precomputed(smk.output[0], model, study, params.changes)
    view = read_table(files.view, study=study, view=SOURCE)
    truth = labels(view, params.task, params.classes, "stress tests")
    name = f"study '{study}': view '{SOURCE}'"
    opened = open_view(view, files, params.pixels, name, smk.threads)
    images = SelectedImages.of_labeled(opened.pixels, view, truth, params.split, params.images)
    job = ExtraOutputsJob(
        model=model,
        study=study,
        view=SOURCE,
        kinds=list(params.changes),
        known=stress_tests(list(params.changes)),
        params=params,
        settings=settings(params.changes, params.images),
        files=ModelFiles.of_job(files, params.files),
        execution=lambda: Execution.of_job(smk),
    )
    return job.run(smk.output[0], images, [opened.digest])


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
