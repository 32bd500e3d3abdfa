"""How one model did on the labeled images of one or more views."""

import polars as pl

from stamp.config.view_names import SOURCE
from stamp.core.artifacts import write_table
from stamp.core.errors import run
from stamp.data.views import scored_classes
from stamp.inference.outputs import combined, read_outputs, read_predictions
from stamp.inference.provenance import same_weights
from stamp.scoring.evaluate import EvaluationSettings, evaluate_view


def main(smk):
    params, model, view = smk.params, smk.wildcards.model, smk.wildcards.view
    names = ("task", "classes", "minimum", "labeled", "merge", "streamed")
    first, of_target = smk.input.views[0], dict(zip(params.targets, smk.input.targets, strict=True))
    settings = EvaluationSettings(
        **{name: params[name] for name in names},
        among=scored_classes(params.among, params.classes, first),
        subsets={
            name: scored_classes(among, params.classes, of_target.get(name, first))
            for name, among in params.subsets.items()
        },
        influence=view == SOURCE,
    )
    read = read_predictions if params.streamed else read_outputs
    files = zip(smk.input.views, smk.input.logits, strict=True)
    rows, outputs = combined([read(*pair, model) for pair in files], params.split)
    table = evaluate_view(rows, outputs, settings, f"study '{smk.wildcards.study}': view '{view}'")
    columns = [pl.lit(model).alias("model"), pl.lit(view).alias("view"), pl.all()]
    metadata = {"model": model, "view": view, **same_weights(smk.input.logits)}
    write_table(smk.output[0], table.select(*columns), metadata)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
