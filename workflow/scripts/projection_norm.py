"""Projection Norm of one model for every target: short trainings on its own answers."""

import torch

from stamp.core.artifacts import write_table
from stamp.core.device import claim
from stamp.core.errors import run
from stamp.inference.provenance import ModelFiles
from stamp.inference.pseudo_label_training import PseudoLabelTraining
from stamp.metrics.projection_norm import TrainingImages, precomputed, projection_norms
from stamp.models.loaders.registry import load_named


def main(smk):
    params, model = smk.params, smk.wildcards.model
    own = ModelFiles.of_job(smk.input, params.files)

    def network():
        torch.set_num_threads(smk.threads)
        loaded = load_named(model, params.load, params.classes, own.weights)
        own.check()
        device = claim(smk.resources)
        return PseudoLabelTraining(loaded, params.task, len(params.classes), params.seed, device)

    if params.pixels:
        table = projection_norms(model, network, TrainingImages.read(smk))
    else:
        table = precomputed(model, params.targets)
    write_table(smk.output[0], table, {"model": model, "study": smk.wildcards.study, **own.card})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
