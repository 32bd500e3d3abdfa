"""The index of the studies' pages."""

from stamp.core.artifacts import atomic_write, read_json
from stamp.core.errors import run
from stamp.report.page.render import index_html


def main(smk):
    with atomic_write(smk.output[0]) as part:
        part.write_text(index_html([read_json(path) for path in smk.input]), encoding="utf-8")


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
