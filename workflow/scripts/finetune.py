"""Fine-tune one model on the source's train split, choosing the epoch on its val split."""

from pathlib import Path

from stamp.device import claim
from stamp.errors import UserError, run
from stamp.finetune import drop_checkpoint, finetune, part_of
from stamp.io import read_json, read_table, write_json
from stamp.models.weights import write_weights
from stamp.pixels import PixelCache
from stamp.views import labels


def split(smk, name, pixels, record, view):
    rows = read_table(view, study=smk.wildcards.study, view=name)
    where = f"study '{smk.wildcards.study}': view '{name}'"
    truth = labels(rows, smk.params.task, smk.params.classes, where)
    return part_of(PixelCache(Path(pixels), Path(record), rows["image"]), truth, read_json(record))


def main(smk):
    files, params, model = smk.input, smk.params, smk.wildcards.model
    train = split(smk, "train", files.pixels, files.record, files.view)
    val = split(smk, "val", files.val_pixels, files.val_record, files.val_view)
    device = claim(smk.resources)
    made = {**params.versions, "code": params.code}
    where = (params.seed, smk.threads, device, Path(params.checkpoint), model, made)
    try:
        done = finetune(params.load, params.classes, train, val, *where)
    except UserError as mistake:
        raise UserError(f"model '{model}': {mistake}") from None
    card = {"model": model, "study": smk.wildcards.study, "seed": params.seed, **params.versions}
    counts = {"images": len(train.rows), "val_images": len(val.rows)}
    card |= {f"initial_{key}": value for key, value in done.loaded.origin.items()}
    write_weights(done.loaded.module, Path(smk.output.weights), {**card, "best": done.best})
    write_json(smk.output.record, {**card, **counts, "best": done.best, "curve": done.curve})
    drop_checkpoint(Path(params.checkpoint))


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
