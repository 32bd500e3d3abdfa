"""Run one model over one view."""

from pathlib import Path

from stamp.core.artifacts import read_table
from stamp.core.errors import run
from stamp.images.view_pixels import open_view
from stamp.inference.logits import Execution, extract_logits, metadata_of
from stamp.inference.provenance import ModelFiles
from stamp.models.loaders.registry import load_named


def main(smk):
    params, model, view = smk.params, smk.wildcards.model, smk.wildcards.view
    rows = read_table(smk.input.view, study=smk.wildcards.study, view=view)
    name = f"study '{smk.wildcards.study}': view '{view}'"
    pixels = open_view(rows, smk.input, params.pixels, name, smk.threads).pixels
    execution = Execution.of_job(smk)
    files = ModelFiles.of_job(smk.input, params.files)
    loaded = load_named(model, params.load, params.classes, files.weights)
    files.check()
    metadata = metadata_of(model, view, params.load, files.card)
    extract_logits(Path(smk.output[0]), pixels, loaded, params.classes, metadata, execution)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
