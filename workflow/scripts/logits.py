"""Run one model over one view."""

from pathlib import Path

from stamp.core.artifacts import read_table
from stamp.core.device import claim
from stamp.core.errors import run
from stamp.images.pixel_cache import PixelCache
from stamp.inference.logits import card, extract, load_named


def main(smk):
    params, study, model = smk.params, smk.wildcards.study, smk.wildcards.model
    view = smk.wildcards.view
    ids = read_table(smk.input.view, study=study, view=view)["image"]
    cache = PixelCache(Path(smk.input.pixels), Path(smk.input.record), ids)
    device = claim(smk.resources)
    weights = Path(smk.input.weights) if smk.input.get("weights") else None
    loaded = load_named(model, params.load, params.classes, weights)
    made_from = card(model, view, params.load["source"])
    target, threads = Path(smk.output[0]), smk.threads
    extract(target, cache, ids, loaded, params.classes, device, made_from, threads=threads)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
