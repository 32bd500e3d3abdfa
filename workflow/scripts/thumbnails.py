"""Small copies of the images that a study's page shows."""

from stamp.core.artifacts import read_json, read_table, write_table
from stamp.core.errors import run
from stamp.images.thumbnails import thumbnails, wanted_images


def main(smk):
    study = smk.wildcards.study
    rows = read_table(smk.input.view, study=study)
    images = wanted_images(read_json(path) for path in smk.input.pairs)
    write_table(smk.output[0], thumbnails(rows, images, smk.params.border), {"study": study})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
