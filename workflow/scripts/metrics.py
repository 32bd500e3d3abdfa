"""The other predictors of one model, from its outputs and extra outputs that are there already."""

import polars as pl

from stamp.core.artifacts import read_json, read_table, write_table
from stamp.core.errors import run
from stamp.inference.outputs import present, read_outputs
from stamp.metrics.further import Elsewhere, Further
from stamp.metrics.measure import Material, metric_rows
from stamp.metrics.reading import cached, columns, first_pairs, images_of, streamed


def main(smk):
    params, files, model = smk.params, smk.input, smk.wildcards.model
    temperature = read_json(files.calibration)["value"] if params.scale else 1.0
    whole = read_outputs(files.view, files.logits, model)
    pool = whole.only("pool")
    there = present(pool.logits)
    how = (params.classes, there, params.task, temperature)
    targets = cached(params.targets, files.views, files.targets, model, how)
    records = streamed(params.streamed, files.streamed_views, files.records, model)
    names, views = [*params.targets, *params.streamed], [*files.views, *files.streamed_views]
    views = dict(zip(names, views, strict=True))
    chosen = columns(params.scored, views, params.classes, there, params.task)
    source = Material.read(pool, *how)
    pairs = read_table(files.pairs, study=smk.wildcards.study)
    kinds = (params.semantic, "random")
    semantic, random = first_pairs(pairs, kinds, params.number, pool.rows["image"])
    given = (source.p, source.labels, there, params.task, temperature)
    elsewhere = Elsewhere(files.get("target_embeddings") or None, images_of(params.targets, views))
    further = Further(
        files.get("extra_outputs") or None, whole.rows, semantic, random, *given, elsewhere
    )
    rest = (params.task, temperature, further, params.wanted, records)
    found = metric_rows(source, targets, chosen, *rest)
    table = found.select(pl.lit(model).alias("model"), pl.all())
    write_table(smk.output[0], table, {"model": model, "study": smk.wildcards.study})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
