"""Draw a study's pairs from the index of its source."""

from stamp.core.artifacts import read_table, write_table
from stamp.core.errors import run
from stamp.data.pairs import study_pairs
from stamp.data.views import select


def main(smk):
    params, study = smk.params, smk.wildcards.study
    where = f"study '{study}': pairs"
    index = read_table(smk.input.index)
    rows = select(index, {**params.images, "split": params.pairs["split"]}, where)
    pairs = study_pairs(rows, params.pairs, params.task, params.classes, params.seed, where)
    write_table(smk.output[0], pairs, {"study": study, "seed": params.seed})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
