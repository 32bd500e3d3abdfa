"""Agreement on the line: estimates for each target from all models together."""

import numpy as np

from stamp.errors import run
from stamp.io import read_json, write_table
from stamp.metrics.measure import Material, columns_of
from stamp.metrics.together import decided, line_rows
from stamp.outputs import read_outputs


def main(smk):
    params, study = smk.params, smk.wildcards.study
    every = np.ones(len(params.classes), dtype=bool)  # NaN where a model has no output
    columns = {
        name: columns_of(params.scored[name], params.classes, every, params.task, view)
        for name, view in zip(params.targets, smk.input.views, strict=True)
    }
    models, domains = {}, {}
    for place, model in enumerate(params.models):
        temperature = read_json(smk.input.calibrations[place])["value"] if params.scale else 1.0
        how = (params.classes, every, params.task, temperature)
        pool = read_outputs(smk.input.view, smk.input.logits[place], model).only("pool")
        targets = {}
        for number, name in enumerate(params.targets):
            logits = smk.input.targets[number * len(params.models) + place]
            found = read_outputs(smk.input.views[number], logits, model)
            targets[name], domains[name] = Material.read(found, *how), found.rows["domain"]
        models[model] = decided(Material.read(pool, *how), targets, params.task, columns)
    table = line_rows(models, domains, columns, params.task)
    write_table(smk.output[0], table, {"study": study})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
