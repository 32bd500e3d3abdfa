"""The other predictors of one model, from its outputs and extra outputs that are there already."""

from stamp.core.artifacts import write_table
from stamp.core.errors import run
from stamp.metrics.decisions import write_decisions
from stamp.metrics.model_metrics import model_metrics


def main(smk):
    found = model_metrics(smk.input, smk.params, smk.wildcards.model, smk.wildcards.study)
    write_table(smk.output.metrics, found.table, found.made_from)
    write_decisions(smk.output.decisions, found.decisions, found.made_from)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
