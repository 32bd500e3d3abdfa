"""Set the numbers of finished studies beside those of the paper."""

from pathlib import Path

from stamp.core.artifacts import atomic_write, write_table
from stamp.core.errors import run
from stamp.paper.audit_inputs import with_predictors
from stamp.paper.audit_study import beside
from stamp.paper.predictor_table import page
from stamp.paper.printed_tables import read


def main(smk):
    results, paper = Path(smk.params.results), read()
    write_table(smk.output.csv, beside(paper, [results / name for name in smk.params.studies]), {})
    compared = with_predictors(results, smk.params.studies)
    with atomic_write(smk.output.predictors) as part:
        part.write_text(page(paper, [results / name for name in compared]))


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
