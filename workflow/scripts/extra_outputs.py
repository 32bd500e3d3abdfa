"""Make the extra inference outputs of one model that the study's metrics and analyses need."""

from stamp.core.artifacts import read_json, read_table
from stamp.core.errors import run
from stamp.images.view_pixels import open_view
from stamp.inference.extra_outputs.job import ExtraOutputsJob
from stamp.inference.extra_outputs.manifest import SOURCE, write_precomputed
from stamp.inference.extra_outputs.registry import EXTRA_OUTPUTS
from stamp.inference.extra_outputs.selected_images import SelectedImages
from stamp.inference.logits import Execution
from stamp.inference.provenance import ModelFiles


def main(smk):
    params, files, study, model = smk.params, smk.input, smk.wildcards.study, smk.wildcards.model
    if not params.pixels:
        return write_precomputed(smk.output[0], model, study, params.kinds)
    temperature = read_json(files.calibration)["value"] if files.get("calibration") else 1.0
    view = read_table(files.view, study=study, view=SOURCE)
    name = f"study '{study}': view '{SOURCE}'"
    opened = open_view(view, files, params.pixels, name, smk.threads)
    pairs, count = read_table(files.pairs, study=study), params.settings["images"]
    images = SelectedImages.of_source(opened.pixels, view, pairs, params.semantic, count)
    study_wide = {"task": params.task, "pairs": images.semantic_digest, "temperature": temperature}
    job = ExtraOutputsJob(
        model=model,
        study=study,
        view=SOURCE,
        kinds=params.kinds,
        known=EXTRA_OUTPUTS,
        params=params,
        settings=params.settings | study_wide,
        files=ModelFiles.of_job(files, params.files),
        execution=lambda: Execution.of_job(smk),
    )
    return job.run(smk.output[0], images, [opened.digest])


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
