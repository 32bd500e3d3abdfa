"""Run one model over a target that is too large for a pixel cache, one record an image."""

from pathlib import Path

from stamp.config.preprocessing import Preprocessing
from stamp.core.device import claim
from stamp.core.errors import run
from stamp.data.views import scored_classes
from stamp.inference.logits import card, load_named
from stamp.inference.predictions import extract_predictions
from stamp.inference.provenance import digests


def main(smk):
    params, model = smk.params, smk.wildcards.model
    view = smk.wildcards.view
    device = claim(smk.resources)
    weights = Path(smk.input.weights) if smk.input.get("weights") else None
    made_from = {part: params[part] for part in ("load", "versions", "classes", "content", "code")}
    made_from["weights"] = digests(smk.input.get("weights"), smk.input.get("backbone"))
    loaded = load_named(model, params.load, params.classes, weights)
    extract_predictions(
        Path(smk.output[0]),
        Path(smk.input.view),
        loaded,
        Preprocessing(**params.preprocessing),
        params.classes,
        scored_classes(params.among, params.classes, smk.input.view),
        device,
        card(model, view, params.load["source"]),
        smk.threads,
        params.border,
        made_from=made_from,
    )


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
