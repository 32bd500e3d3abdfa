"""The other predictors of one model, from its outputs and extra outputs that are there already."""

import polars as pl

from stamp.core.artifacts import read_json, read_table, write_table
from stamp.core.errors import run
from stamp.inference.outputs import present, read_outputs
from stamp.inference.provenance import same_weights
from stamp.metrics import inputs
from stamp.metrics.decisions import decided, write_decisions
from stamp.metrics.from_extra_outputs import ExtraInputs, TargetEmbeddings
from stamp.metrics.metrics import metric_table


def main(smk):
    params, files, model = smk.params, smk.input, smk.wildcards.model
    made_from = {"model": model, "study": smk.wildcards.study}
    temperature = read_json(files.calibration)["value"] if params.scale else 1.0
    view = read_outputs(files.view, files.logits, model)
    pool, pairs = view.only("pool"), read_table(files.pairs, study=smk.wildcards.study)
    there, images = present(pool.logits), pool.rows["image"]
    settings = inputs.OutputSettings(params.classes, there, params.task, temperature)
    theirs = inputs.target_files(files, params)
    found = inputs.ModelOutputs.read(pool, theirs, model, settings)
    ids = {name: found.targets[name].images for name in params.targets}
    extra = ExtraInputs(
        manifest=files.get("extra_outputs") or None,
        view=view.rows,
        semantic=inputs.first_pairs(pairs, params.semantic, params.number, images),
        random=inputs.first_pairs(pairs, "random", params.number, images),
        source=found.source,
        there=there,
        target_embeddings=TargetEmbeddings(files.get("target_embeddings") or None, ids),
        exact_total=inputs.exact_total(found.source.p, pool.rows, pairs, params),
    )
    extras = [file for file in (extra.manifest, extra.target_embeddings.manifest) if file]
    made_from |= same_weights(
        [files.logits, files.calibration, *(one.outputs for one in theirs.values()), *extras]
    )
    table = metric_table(found.source, found.targets, extra, params.wanted)
    table = table.select(pl.lit(model).alias("model"), pl.all())
    write_table(smk.output.metrics, table, made_from)
    if not there.all():  # agreement is over the same classes for all models
        found = inputs.ModelOutputs.read(pool, theirs, model, settings.of_all_classes)
    decisions = decided(found.source, found.targets, extra.degenerate)
    write_decisions(smk.output.decisions, decisions, made_from)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
