"""Set the numbers of finished studies beside those of the paper."""

from pathlib import Path

from stamp.audit.study import beside
from stamp.audit.tables import read
from stamp.errors import run
from stamp.io import write_table


def main(smk):
    folders = [Path(smk.params.results) / name for name in smk.params.studies]
    write_table(smk.output[0], beside(read(), folders), {})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
