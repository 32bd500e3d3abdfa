"""Fine-tune one model on the source's train split, choosing the epoch on its val split."""

from pathlib import Path

from stamp.core.artifacts import write_json
from stamp.core.device import claim
from stamp.core.errors import UserError, run
from stamp.models.training.finetune import drop_checkpoint, finetune, read_part
from stamp.models.weights import write_weights


def main(smk):
    files, params, model, study = smk.input, smk.params, smk.wildcards.model, smk.wildcards.study
    what = (study, params.task, params.classes)
    train = read_part("train", files.view, files.pixels, files.record, *what)
    val = read_part("val", files.val_view, files.val_pixels, files.val_record, *what)
    made = {**params.versions, "code": params.code}
    how = (params.seed, smk.threads, claim(smk.resources), Path(params.checkpoint), model, made)
    try:
        done = finetune(params.load, params.classes, train, val, *how)
    except UserError as mistake:
        raise UserError(f"model '{model}': {mistake}") from None
    card = {"model": model, "study": study, "seed": params.seed, **params.versions}
    card |= {f"initial_{key}": value for key, value in done.loaded.origin.items()}
    card["best"] = done.best
    counts = {"images": len(train.rows), "val_images": len(val.rows)}
    write_weights(done.loaded.module, Path(smk.output.weights), card)
    write_json(smk.output.record, {**card, **counts, "curve": done.curve})
    drop_checkpoint(Path(params.checkpoint))


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
