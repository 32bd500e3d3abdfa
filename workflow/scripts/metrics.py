"""The other predictors of one model, from its outputs and further passes that are there already."""

import polars as pl

from stamp.errors import run
from stamp.io import read_json, read_table, write_table
from stamp.metrics.further import Further
from stamp.metrics.measure import Material, metric_rows
from stamp.outputs import present, read_outputs
from stamp.scoring import pair_rows


def main(smk):
    params, model, study = smk.params, smk.wildcards.model, smk.wildcards.study
    temperature = read_json(smk.input.calibration)["value"] if params.scale else 1.0
    whole = read_outputs(smk.input.view, smk.input.logits, model)
    pool = whole.only("pool")
    there = present(pool.logits)
    how = (params.classes, there, params.task, temperature)
    targets = {}
    for name, view, logits in zip(params.targets, smk.input.views, smk.input.targets, strict=True):
        found = read_outputs(view, logits, model)
        targets[name] = (Material.read(found, *how), found.rows["domain"])
    names = [name for name, has in zip(params.classes, there, strict=True) if has]
    columns = {
        name: {
            domain: [names.index(one) for one in wanted if one in names]
            for domain, wanted in params.labeled[name].items()
        }
        for name in params.targets
    }
    source = Material.read(pool, *how)
    pairs = read_table(smk.input.pairs, study=study)
    semantic, random = (
        pair_rows(pairs.filter(pl.col("kind") == kind).head(params.number), pool.rows["image"])
        for kind in (params.semantic, "random")
    )
    manifest, given = smk.input.get("passes") or None, (source.p, source.labels, there)
    further = Further(manifest, whole.rows, semantic, random, *given, params.task, temperature)
    rest = (params.task, temperature, further, params.wanted)
    found = metric_rows(source, targets, columns, *rest)
    table = found.select(pl.lit(model).alias("model"), pl.all())
    write_table(smk.output[0], table, {"model": model, "study": study})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
