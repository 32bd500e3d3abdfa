"""Fit one model's temperature and say what each exclusion rule makes of it."""

from stamp.core.artifacts import write_json
from stamp.core.errors import run
from stamp.inference.outputs import read_outputs
from stamp.scoring.calibration import calibration_record


def main(smk):
    params, model = smk.params, smk.wildcards.model
    held_out = read_outputs(smk.input.view, smk.input.logits, model).only("calibration")
    where = f"study '{smk.wildcards.study}': calibration"
    settings = (params.task, params.classes, params.rules, params.minimum)
    write_json(smk.output[0], calibration_record(held_out, *settings, model, where))


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
