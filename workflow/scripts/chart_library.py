"""The script that draws the charts of all pages."""

from stamp.core.artifacts import atomic_write
from stamp.core.errors import run
from stamp.report.page.render import chart_library


def main(smk):
    with atomic_write(smk.output[0]) as part:
        part.write_text(chart_library(), encoding="utf-8")


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
