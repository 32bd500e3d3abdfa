"""Further forward passes of one model: those that a metric or an analysis of the study needs."""

from pathlib import Path

from stamp.errors import UserError, run
from stamp.extraction import Images, Model, make_all
from stamp.io import read_json, read_table, write_json
from stamp.logits import card, load_model
from stamp.passes import GIVEN, file_digest
from stamp.pixels import PixelCache


def main(smk):
    params, study, name = smk.params, smk.wildcards.study, smk.wildcards.model
    view = read_table(smk.input.view, study=study, view="source")
    manifest = {"model": name, "study": study}
    if not smk.input.get("pixels"):
        entries = {kind: {"reason": GIVEN} for kind in params.kinds}
        return write_json(smk.output[0], {**manifest, "passes": entries})
    cache = PixelCache(Path(smk.input.pixels), Path(smk.input.record), view["image"])
    pairs = read_table(smk.input.pairs, study=study)
    images = Images.of(cache, view, pairs, params.semantic, params.settings["images"])
    weights = Path(smk.input.weights) if smk.input.get("weights") else None
    device = "cuda" if smk.resources.get("gpu") else "cpu"

    def load():
        try:
            loaded = load_model(params.load, params.classes, weights)
        except UserError as mistake:
            raise UserError(f"model '{name}': {mistake}") from None
        how = (params.settings, params.seed, device, smk.threads)
        return Model(loaded, len(params.classes), images, *how)

    files = [smk.input.get(part) for part in ("weights", "backbone") if smk.input.get(part)]
    made_from = {part: params[part] for part in ("load", "versions", "classes", "seed", "code")}
    made_from["weights"] = [file_digest(file) for file in files]
    made_from |= {"pixels": read_json(smk.input.record)["pixels"], "images": images.digest}
    made = card(name, "source", params.load["source"])
    folder = Path(smk.output[0]).parent
    entries = make_all(folder, name, params.kinds, made_from, params.settings, load, made)
    write_json(smk.output[0], {**manifest, "passes": entries})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
