"""Draw how far apart the pairs of each model lie, and write the table behind the figure."""

from stamp.core.artifacts import read_json, write_table
from stamp.core.errors import run
from stamp.report.figures.pair_distances import draw
from stamp.report.plot.style import save


def main(smk):
    labels = {key: model["label"] for key, model in smk.params.models.items()}
    records = {key: read_json(path) for key, path in zip(labels, smk.input, strict=True)}
    figure, table = draw(records, labels, smk.params.texts)
    write_table(smk.output.csv, table, {})
    save(figure, smk.output.png, smk.output.pdf)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
