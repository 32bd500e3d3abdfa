"""Draw how the fine-tuned models of a study trained, and write the table behind the figure."""

from collections import Counter

from stamp.core.artifacts import read_json, write_table
from stamp.core.errors import run
from stamp.report.figures.training import draw
from stamp.report.plot.style import save


def main(smk):
    labels = smk.params.labels
    times = Counter(labels.values())
    names = [label if times[label] == 1 else f"{label} ({key})" for key, label in labels.items()]
    records = [read_json(path) for path in smk.input.records]
    figure, table = draw(dict(zip(names, records, strict=True)), smk.params.texts)
    write_table(smk.output.csv, table, {})
    save(figure, smk.output.png, smk.output.pdf)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
