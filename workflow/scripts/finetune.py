"""Fine-tune one model on the source's train split, choosing the epoch on its val split."""

from pathlib import Path

from stamp.core.artifacts import write_json
from stamp.core.device import claim
from stamp.core.errors import naming, run
from stamp.core.file_digest import read_sha256
from stamp.inference.provenance import ModelFiles
from stamp.models.training.epoch_checkpoint import drop_checkpoint
from stamp.models.training.finetune import RunSettings, finetune
from stamp.models.training.splits import read_splits
from stamp.models.weights import write_weights


def main(smk):
    params, model, study = smk.params, smk.wildcards.model, smk.wildcards.study
    train, val = read_splits(smk.input, study, params.task, params.classes)
    checkpoint, made_with = Path(params.checkpoint), {**params.versions, "code": params.code}
    made_with["files"] = list(params.files)
    device = claim(smk.resources)
    how = RunSettings(params.seed, smk.threads, device, checkpoint, model, made_with)
    with naming(f"model '{model}'"):
        done = finetune(params.load, params.classes, train, val, how)
    initial = ModelFiles.of_job({"weights": smk.input.get("initial")}, params.files)
    initial.check()
    card = {"model": model, "study": study, "seed": params.seed, **done.card, **params.versions}
    card |= {f"initial_{key}": value for key, value in initial.card.items()}
    write_weights(done.loaded.module, Path(smk.output.weights), card)
    record = {"images": len(train.rows), "val_images": len(val.rows), "curve": done.curve}
    record |= {"weights_sha256": read_sha256(smk.output.weights)}
    write_json(smk.output.record, {**card, **record})
    drop_checkpoint(checkpoint)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
