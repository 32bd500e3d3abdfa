"""How one model did on the labeled images of one or more views."""

import polars as pl

from stamp.errors import run
from stamp.evaluate import check_labeled, evaluate
from stamp.io import write_table
from stamp.outputs import combined, merged, read_outputs
from stamp.views import labels


def main(smk):
    params, model, study = smk.params, smk.wildcards.model, smk.wildcards.study
    view = smk.wildcards.view
    where = f"study '{study}': view '{view}'"
    parts = [
        read_outputs(rows, logits, model)
        for rows, logits in zip(smk.input.views, smk.input.logits, strict=True)
    ]
    rows, logits = combined(parts, params.split)
    classes = [*params.classes, *params.merge]
    check_labeled(rows, params.labeled, classes, where)
    truth = labels(rows, params.task, classes, where)
    logits = merged(logits, params.classes, params.merge)
    table = evaluate(logits, truth, rows["domain"], params.task, classes, params.minimum)
    common = [pl.lit(value).alias(name) for name, value in (("model", model), ("view", view))]
    write_table(smk.output[0], table.select(*common, pl.all()), {"model": model, "view": view})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
