"""Fit one model's linear head on the embeddings of its frozen backbone."""

from stamp.core.artifacts import read_table, write_arrays, write_json
from stamp.core.errors import naming, run
from stamp.core.file_digest import read_sha256
from stamp.inference.provenance import same_weights
from stamp.models.training.probe import DEFAULTS, fit, read_embeddings


def main(smk):
    files, params, model, study = smk.input, smk.params, smk.wildcards.model, smk.wildcards.study
    found = []
    for name, view, arrays in (
        ("train", files.view, files.embeddings),
        ("val", files.val_view, files.val_embeddings),
    ):
        rows = read_table(view, study=study, view=name)
        about = {"backbone": params.backbone, "view": name}
        with naming(f"study '{study}'"):
            found.append(read_embeddings(arrays, about, rows, params.task, params.classes))
    head = {**DEFAULTS, **params.head}
    with naming(f"model '{model}'"):
        classes = len(params.classes)
        done = fit(*found, params.task, classes, head["penalty"], head["standardise"])
    card = {"model": model, "study": study, "backbone": params.backbone}
    weights = same_weights([files.embeddings, files.val_embeddings])
    card |= {f"backbone_{key.removeprefix('weights_')}": one for key, one in weights.items()}
    write_arrays(smk.output.weights, done.arrays, card)
    record = {"images": len(found[0].labels), **done.record(params.classes)}
    record |= {"weights_sha256": read_sha256(smk.output.weights)}
    write_json(smk.output.record, {**card, **record})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
