"""Train one model on the source's train split."""

from pathlib import Path

from stamp.core.artifacts import read_table, write_json
from stamp.core.errors import run
from stamp.core.file_digest import read_sha256
from stamp.data.views import labels
from stamp.images.pixel_cache import PixelCache
from stamp.models.training.train import TrainingImages, train
from stamp.models.weights import write_weights


def main(smk):
    params, study, model = smk.params, smk.wildcards.study, smk.wildcards.model
    rows = read_table(smk.input.view, study=study, view="train")
    cache = PixelCache(Path(smk.input.pixels), Path(smk.input.record), rows["image"])
    truth = labels(rows, params.task, params.classes, f"study '{study}': view 'train'")
    pixels, groups = cache.rows(0, len(cache)), rows["group"].to_list()
    images = TrainingImages(pixels, truth, groups, params.task)
    trained = train(params.load, params.classes, images, params.seed, smk.threads, model)
    metadata = {"model": model, "study": study, "seed": params.seed, **params.versions}
    write_weights(trained.loaded.module, Path(smk.output.weights), metadata)
    told = {"losses": trained.losses, "images": trained.images}
    told |= {"weights_sha256": read_sha256(smk.output.weights)}
    write_json(smk.output.record, {**metadata, **told})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
