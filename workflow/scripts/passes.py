"""Further forward passes of one model: those that a metric or an analysis of the study needs."""

from pathlib import Path

from stamp.device import claim
from stamp.errors import run
from stamp.extraction import Images
from stamp.io import read_table
from stamp.pass_jobs import Job, write_none
from stamp.pixels import PixelCache


def main(smk):
    params, files = smk.params, smk.input
    study, model = smk.wildcards.study, smk.wildcards.model
    if not files.get("pixels"):
        return write_none(smk.output[0], model, study, params.kinds)
    weights = (files.get("weights") or None, files.get("backbone") or None)
    how = (params, params.settings, *weights, lambda: claim(smk.resources), smk.threads)
    job = Job(model, study, "source", params.kinds, *how)
    view = read_table(files.view, study=study, view="source")
    cache = PixelCache(Path(files.pixels), Path(files.record), view["image"])
    pairs = read_table(files.pairs, study=study)
    images = Images.of(cache, view, pairs, params.semantic, params.settings["images"])
    return job.run(smk.output[0], images, [files.record])


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
