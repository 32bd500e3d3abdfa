"""Extra inference outputs of one model: those that a metric or an analysis of the study needs."""

from pathlib import Path

from stamp.core.artifacts import read_json, read_table
from stamp.core.device import claim
from stamp.core.errors import run
from stamp.images.pixel_cache import PixelCache
from stamp.inference.extra_outputs.extraction import Images
from stamp.inference.extra_outputs.job import Job, write_none


def main(smk):
    params, files = smk.params, smk.input
    study, model = smk.wildcards.study, smk.wildcards.model
    if not files.get("pixels"):
        return write_none(smk.output[0], model, study, params.kinds)
    weights = (files.get("weights") or None, files.get("backbone") or None)
    calibration = files.get("calibration")
    temperature = read_json(calibration)["value"] if calibration else 1.0
    view = read_table(files.view, study=study, view="source")
    cache = PixelCache(Path(files.pixels), Path(files.record), view["image"])
    pairs = read_table(files.pairs, study=study)
    images = Images.of(cache, view, pairs, params.semantic, params.settings["images"])
    study_wide = {"task": params.task, "pairs": images.semantic_digest, "temperature": temperature}
    how = (params, params.settings | study_wide, *weights, lambda: claim(smk.resources))
    job = Job(model, study, "source", params.kinds, *how, smk.threads)
    return job.run(smk.output[0], images, [files.record])


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
