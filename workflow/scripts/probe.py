"""Fit one model's linear head on the embeddings of its frozen backbone."""

import numpy as np

from stamp.core.artifacts import ids_digest, read_arrays, read_table, write_arrays, write_json
from stamp.core.errors import UserError, run
from stamp.core.file_digest import read_sha256
from stamp.data.views import labels
from stamp.inference.provenance import same_weights
from stamp.models.training.probe import DEFAULTS, LabeledEmbeddings, fit


def split(smk, name, view, embeddings):
    rows = read_table(view, study=smk.wildcards.study, view=name)
    where = f"study '{smk.wildcards.study}': view '{name}'"
    expected = {"backbone": smk.params.backbone, "view": name, "ids": ids_digest(rows["image"])}
    found = read_arrays(embeddings, **expected)["embeddings"]
    return LabeledEmbeddings(found, labels(rows, smk.params.task, smk.params.classes, where))


def main(smk):
    files, params, model = smk.input, smk.params, smk.wildcards.model
    train = split(smk, "train", files.view, files.embeddings)
    val = split(smk, "val", files.val_view, files.val_embeddings)
    head = {**DEFAULTS, **params.head}
    try:
        classes = len(params.classes)
        done = fit(train, val, params.task, classes, head["penalty"], head["standardise"])
    except UserError as mistake:
        raise UserError(f"model '{model}': {mistake}") from None
    card = {"model": model, "study": smk.wildcards.study, "backbone": params.backbone}
    weights = same_weights([files.embeddings, files.val_embeddings])
    card |= {f"backbone_{key.removeprefix('weights_')}": one for key, one in weights.items()}
    arrays = {"weight": done.weight.astype(np.float32), "bias": done.bias.astype(np.float32)}
    write_arrays(smk.output.weights, arrays, card)
    constant = {params.classes[c]: why for c, why in done.constant.items()}
    record = {"images": len(train.labels), "penalty": done.penalty, "curve": done.curve}
    record |= {"constant": constant, "weights_sha256": read_sha256(smk.output.weights)}
    write_json(smk.output.record, {**card, **record})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
