"""How one model did on the labeled images of one or more views."""

import polars as pl

from stamp.core.artifacts import write_table
from stamp.core.errors import run
from stamp.data.views import scored_classes
from stamp.inference.outputs import combined, read_outputs, read_predictions
from stamp.scoring.evaluate import check_labeled, evaluate_multiclass, evaluate_multilabel


def main(smk):
    params, model, view = smk.params, smk.wildcards.model, smk.wildcards.view
    where = f"study '{smk.wildcards.study}': view '{view}'"
    read = read_predictions if params.streamed else read_outputs
    files = zip(smk.input.views, smk.input.logits, strict=True)
    rows, outputs = combined([read(*pair, model) for pair in files], params.split)
    if params.task == "multilabel":
        settings = (params.classes, params.merge, params.labeled, params.minimum)
        table = evaluate_multilabel(rows, outputs, *settings, where)
    else:
        check_labeled(rows, params.labeled, params.classes, where)
        lists = {None: params.among, **params.subsets}
        numbers = {
            name: scored_classes(part, params.classes, smk.input.views[0])
            for name, part in lists.items()
        }
        among = numbers.pop(None)
        settings = (params.classes, among, numbers, params.streamed)
        table = evaluate_multiclass(rows, outputs, *settings, where)
    common = [pl.lit(value).alias(name) for name, value in (("model", model), ("view", view))]
    write_table(smk.output[0], table.select(*common, pl.all()), {"model": model, "view": view})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
