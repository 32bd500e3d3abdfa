"""Fit one model's temperature and say what each exclusion rule makes of it."""

from dataclasses import asdict

from stamp.calibrate import RULES, exclusion, fit_temperature
from stamp.errors import run
from stamp.evaluate import evaluate
from stamp.io import write_json
from stamp.outputs import read_outputs
from stamp.views import labels


def main(smk):
    params, model = smk.params, smk.wildcards.model
    source = read_outputs(smk.input.view, smk.input.logits, model)
    held_out = source.only("calibration")
    where = f"study '{smk.wildcards.study}': calibration"
    truth = labels(held_out.rows, params.task, params.classes, where)
    fitted = fit_temperature(held_out.logits, truth, params.task)
    domains = held_out.rows["domain"]
    table = evaluate(held_out.logits, truth, domains, params.task, params.classes, params.minimum)
    performance = table["value"][0]
    known = float("nan") if performance is None else performance
    excluded = {
        rule: exclusion(rule, fitted.value, known, params.task, len(params.classes), **params.rules)
        for rule in RULES
    }
    record = {**asdict(fitted), "model": model, "performance": performance, "excluded": excluded}
    write_json(smk.output[0], record)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
