"""Recompute the paper's printed numbers: the table of claims and the page on it."""

from pathlib import Path

from stamp.audit.claims import table
from stamp.audit.page import page
from stamp.audit.tables import read
from stamp.audit.themes import audit
from stamp.errors import run
from stamp.io import whole, write_table


def main(smk):
    lists = Path(smk.params.lists) if smk.params.lists else None
    claims = table(audit(read(), lists))
    write_table(smk.output.claims, claims, {})
    with whole(smk.output.page) as part:
        part.write_text(page(claims))


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
