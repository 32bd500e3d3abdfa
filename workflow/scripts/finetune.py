"""Fine-tune one model on the source's train split, choosing the epoch on its val split."""

from pathlib import Path

from stamp.core.artifacts import write_json
from stamp.core.device import claim
from stamp.core.errors import UserError, run
from stamp.core.file_digest import read_sha256
from stamp.inference.provenance import ModelFiles
from stamp.models.training.epoch_checkpoint import drop_checkpoint
from stamp.models.training.finetune import RunSettings, finetune
from stamp.models.training.splits import SplitFiles, read_split
from stamp.models.weights import write_weights


def main(smk):
    files, params, model, study = smk.input, smk.params, smk.wildcards.model, smk.wildcards.study
    train_files = SplitFiles(files.view, files.pixels, files.record)
    val_files = SplitFiles(files.val_view, files.val_pixels, files.val_record)
    train = read_split("train", train_files, study, params.task, params.classes)
    val = read_split("val", val_files, study, params.task, params.classes)
    how = RunSettings(
        seed=params.seed,
        threads=smk.threads,
        device=claim(smk.resources),
        checkpoint=Path(params.checkpoint),
        name=model,
        made_with={**params.versions, "code": params.code, "files": list(params.files)},
    )
    try:
        done = finetune(params.load, params.classes, train, val, how)
    except UserError as mistake:
        raise UserError(f"model '{model}': {mistake}") from None
    initial = ModelFiles.of_job({"weights": files.get("initial")}, params.files)
    initial.check()
    origin = {f"initial_{key}": value for key, value in done.loaded.origin.items()}
    origin |= {f"initial_{key}": value for key, value in initial.card.items()}
    card = {"model": model, "study": study, "seed": params.seed, "best": done.best}
    card |= {**params.versions, **origin}
    write_weights(done.loaded.module, Path(smk.output.weights), card)
    record = {"images": len(train.rows), "val_images": len(val.rows), "curve": done.curve}
    record |= {"weights_sha256": read_sha256(smk.output.weights)}
    write_json(smk.output.record, {**card, **record})
    drop_checkpoint(how.checkpoint)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
