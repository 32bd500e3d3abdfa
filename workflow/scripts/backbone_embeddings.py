"""Run one frozen backbone over one view."""

from pathlib import Path

from stamp.core.artifacts import read_table
from stamp.core.device import claim
from stamp.core.errors import UserError, run
from stamp.images.pixel_cache import PixelCache
from stamp.inference.backbone_embeddings import extract_embeddings
from stamp.inference.logits import Execution
from stamp.inference.provenance import ModelFiles
from stamp.models.loaders.probe import backbone


def main(smk):
    key, view, params = smk.wildcards.backbone, smk.wildcards.view, smk.params
    ids = read_table(smk.input.view, study=smk.wildcards.study, view=view)["image"]
    cache = PixelCache(Path(smk.input.pixels), Path(smk.input.record), ids)
    execution = Execution(claim(smk.resources), smk.threads)
    files = ModelFiles.of_job(smk.input, params.files)
    metadata = {"backbone": key, "view": view, **params.versions, **files.card}
    try:
        frozen = backbone(params.load)
        files.check()
        extract_embeddings(Path(smk.output[0]), cache, frozen, metadata, execution)
    except UserError as mistake:
        raise UserError(f"backbone '{key}': {mistake}") from None


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
