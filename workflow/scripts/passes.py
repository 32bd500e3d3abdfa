"""Further forward passes of one model: those that a metric or an analysis of the study needs."""

from pathlib import Path

from stamp.device import claim
from stamp.errors import UserError, run
from stamp.extraction import Images, Model, make_all
from stamp.io import read_json, read_table, write_json
from stamp.logits import card, load_model
from stamp.passes import GIVEN, file_digest
from stamp.pixels import PixelCache


def main(smk):
    params, files, name = smk.params, smk.input, smk.wildcards.model
    view = read_table(files.view, study=smk.wildcards.study, view="source")
    manifest = {"model": name, "study": smk.wildcards.study}
    if not files.get("pixels"):
        entries = {kind: {"reason": GIVEN} for kind in params.kinds}
        return write_json(smk.output[0], {**manifest, "passes": entries})
    cache = PixelCache(Path(files.pixels), Path(files.record), view["image"])
    pairs = read_table(files.pairs, study=smk.wildcards.study)
    images = Images.of(cache, view, pairs, params.semantic, params.settings["images"])
    calibrated = files.get("calibration")
    settings = {**params.settings, "task": params.task, "pairs": images.semantic_digest}
    settings["temperature"] = read_json(calibrated)["value"] if calibrated else 1.0

    def load():
        how = (settings, params.seed, claim(smk.resources), smk.threads)
        weights = Path(files.weights) if files.get("weights") else None
        try:
            loaded = load_model(params.load, params.classes, weights)
        except UserError as mistake:
            raise UserError(f"model '{name}': {mistake}") from None
        return Model(loaded, len(params.classes), images, *how)

    read = [files.get(part) for part in ("weights", "backbone") if files.get(part)]
    made_from = {part: params[part] for part in ("load", "versions", "classes", "seed", "code")}
    made_from |= {"weights": [file_digest(file) for file in read], "images": images.digest}
    made_from["pixels"] = read_json(files.record)["pixels"]
    folder, made = Path(smk.output[0]).parent, card(name, "source", params.load["source"])
    entries = make_all(folder, name, params.kinds, made_from, settings, load, made)
    return write_json(smk.output[0], {**manifest, "passes": entries})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
