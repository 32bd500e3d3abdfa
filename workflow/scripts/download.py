"""Download one file of a data set into its folder, and unpack it where it is an archive."""

from stamp.core.artifacts import write_json
from stamp.core.errors import run
from stamp.data.download import obtain


def main(smk):
    write_json(smk.output[0], obtain(smk.params.remote, smk.params.access, smk.params.root))


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
