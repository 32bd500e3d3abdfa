"""Fit one model's temperature and say which exclusion rules it breaks."""

from stamp.core.artifacts import write_json
from stamp.core.errors import run
from stamp.inference.outputs import read_outputs
from stamp.inference.provenance import same_weights
from stamp.scoring.calibrate import ExclusionThresholds, calibrate


def main(smk):
    params, model = smk.params, smk.wildcards.model
    held_out = read_outputs(smk.input.view, smk.input.logits, model).only("calibration")
    thresholds = ExclusionThresholds(**params.rules)
    where = f"study '{smk.wildcards.study}': calibration"
    found = calibrate(held_out, params.task, params.classes, thresholds, params.minimum, where)
    write_json(smk.output[0], {"model": model, **same_weights([smk.input.logits]), **found})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
