"""Agreement on the line: estimates for each target from all models together."""

import numpy as np

from stamp.core.artifacts import read_json, write_table
from stamp.core.errors import run
from stamp.inference.outputs import read_outputs
from stamp.metrics.agreement_on_the_line import decided, line_rows
from stamp.metrics.measure import Material
from stamp.metrics.reading import cached, columns


def main(smk):
    params, files, count = smk.params, smk.input, len(smk.params.models)
    every = np.ones(len(params.classes), dtype=bool)  # NaN where a model has no output
    views = dict(zip(params.targets, files.views, strict=True))
    chosen = columns(params.scored, views, params.classes, every, params.task)
    models, domains = {}, {}
    for place, model in enumerate(params.models):
        temperature = read_json(files.calibrations[place])["value"] if params.scale else 1.0
        how = (params.classes, every, params.task, temperature)
        pool = read_outputs(files.view, files.logits[place], model).only("pool")
        targets = cached(params.targets, files.views, files.targets[place::count], model, how)
        material = {name: one for name, (one, _) in targets.items()}
        domains = {name: of_row for name, (_, of_row) in targets.items()}
        models[model] = decided(Material.read(pool, *how), material, params.task, chosen)
    table = line_rows(models, domains, chosen, params.task)
    write_table(smk.output[0], table, {"study": smk.wildcards.study})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
