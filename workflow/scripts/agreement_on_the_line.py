"""Agreement on the line: estimates for each target from all models together."""

import numpy as np

from stamp.core.artifacts import read_json, write_table
from stamp.core.errors import run
from stamp.inference.outputs import read_outputs
from stamp.metrics.agreement_on_the_line import decided, line_table
from stamp.metrics.inputs import OutputSettings, ScaledOutputs, TargetFiles, read_target


def main(smk):
    params, files, count = smk.params, smk.input, len(smk.params.models)
    every = np.ones(len(params.classes), dtype=bool)  # NaN where a model has no output
    models, targets = {}, {}
    for place, model in enumerate(params.models):
        temperature = read_json(files.calibrations[place])["value"] if params.scale else 1.0
        settings = OutputSettings(params.classes, every, params.task, temperature)
        pool = read_outputs(files.view, files.logits[place], model).only("pool")
        outputs = zip(params.targets, files.views, files.targets[place::count], strict=True)
        for name, view, file in outputs:
            target = TargetFiles(view, file, params.scored[name])
            targets[name] = read_target(target, model, settings)
        models[model] = decided(ScaledOutputs.read(pool, settings), targets)
    table = line_table(models, targets, params.task)
    write_table(smk.output[0], table, {"study": smk.wildcards.study})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
