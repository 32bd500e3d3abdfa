"""The page of a study as one HTML file, and a summary of it for the index."""

from pathlib import Path

from stamp.core.artifacts import atomic_write, write_json
from stamp.core.errors import run
from stamp.report.page.read_tables import read_tables, study_facts
from stamp.report.page.render import study_html, summary
from stamp.report.page.study_page import study_page


def main(smk):
    tables = read_tables(smk.input, smk.wildcards.study, smk.params)
    page = study_page(tables, study_facts(smk.params, Path(smk.output.html).parents[1]))
    library = Path(smk.input.library).read_text(encoding="utf-8")
    with atomic_write(smk.output.html) as part:
        part.write_text(study_html(page, library), encoding="utf-8")
    write_json(smk.output.summary, summary(page, f"{smk.wildcards.study}/page.html"))


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
