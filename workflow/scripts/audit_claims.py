"""Recompute the paper's printed numbers: the table of claims and the page on it."""

from pathlib import Path

from stamp.core.artifacts import atomic_write, write_table
from stamp.core.errors import run
from stamp.paper.audit_claims import audit
from stamp.paper.claims import table
from stamp.paper.page import page
from stamp.paper.printed_tables import read


def main(smk):
    lists = Path(smk.params.lists) if smk.params.lists else None
    claims = table(audit(read(), lists))
    write_table(smk.output.claims, claims, {})
    with atomic_write(smk.output.page) as part:
        part.write_text(page(claims))


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
