"""One further analysis of a study: its table, what each model brings to it, and a sentence."""

from importlib import import_module

from stamp.core.artifacts import atomic_write, write_table
from stamp.core.errors import run
from stamp.report.analysis import read

ABOUT = ("models", "texts", "settings", "options", "seed")


def main(smk):
    params = smk.params
    about = {key: getattr(params, key) for key in ABOUT}
    data = read(smk.input, smk.wildcards.study, **about)
    module = import_module(f"stamp.report.analyses.{smk.wildcards.analysis}.table")
    table = module.table(data)
    write_table(smk.output.csv, table, {})
    write_table(smk.output.models, module.models(data), {})
    with atomic_write(smk.output.text) as part:
        part.write_text(module.sentence(table) + "\n")


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
