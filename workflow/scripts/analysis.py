"""One further analysis of a study: its table, what each model brings to it, and a sentence."""

from importlib import import_module

from stamp.analyses import read
from stamp.errors import run
from stamp.io import whole, write_table

ABOUT = ("models", "texts", "settings", "options", "seed")


def main(smk):
    params = smk.params
    about = {key: getattr(params, key) for key in ABOUT}
    data = read(smk.input, smk.wildcards.study, **about)
    module = import_module(f"stamp.analyses.{smk.wildcards.analysis}")
    table = module.table(data)
    write_table(smk.output.csv, table, {})
    write_table(smk.output.models, module.models(data), {})
    with whole(smk.output.text) as part:
        part.write_text(module.sentence(table) + "\n")


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
