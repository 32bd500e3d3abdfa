"""Gather every model's scores and outcomes into two tables."""

from stamp.core.artifacts import write_table
from stamp.core.errors import run, say
from stamp.report.collect import collect


def main(smk):
    study = smk.wildcards.study
    found = collect(smk.input, smk.params, study)
    for line in found.warnings:
        say(f"stamp: warning: study '{study}': {line}")
    write_table(smk.output.evaluations, found.evaluations, {})
    write_table(smk.output.scores, found.scores, {"study": study})
    write_table(smk.output.outcomes, found.outcomes, {"study": study})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
