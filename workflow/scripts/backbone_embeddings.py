"""Run one frozen backbone over one view."""

from pathlib import Path

from stamp.core.artifacts import read_table
from stamp.core.errors import UserError, run
from stamp.images.view_pixels import open_view
from stamp.inference.backbone_embeddings import extract_embeddings
from stamp.inference.logits import Execution
from stamp.inference.provenance import ModelFiles
from stamp.models.loaders.probe import backbone


def main(smk):
    key, view, params = smk.wildcards.backbone, smk.wildcards.view, smk.params
    rows = read_table(smk.input.view, study=smk.wildcards.study, view=view)
    name = f"study '{smk.wildcards.study}': view '{view}'"
    pixels = open_view(rows, smk.input, params.pixels, name, smk.threads).pixels
    execution = Execution.of_job(smk)
    files = ModelFiles.of_job(smk.input, params.files)
    metadata = {"backbone": key, "view": view, **params.versions, **files.card}
    try:
        frozen = backbone(params.load)
        files.check()
        extract_embeddings(Path(smk.output[0]), pixels, frozen, metadata, execution)
    except UserError as mistake:
        raise UserError(f"backbone '{key}': {mistake}") from None


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
