"""Set the numbers of finished studies beside those of the paper."""

from pathlib import Path

from stamp.core.artifacts import write_table
from stamp.core.errors import run
from stamp.paper.audit_study import beside
from stamp.paper.printed_tables import read


def main(smk):
    folders = [Path(smk.params.results) / name for name in smk.params.studies]
    write_table(smk.output[0], beside(read(), folders), {})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
