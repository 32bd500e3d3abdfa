"""What one model's cached outputs show beyond its score, for the analyses that ask."""

from dataclasses import replace
from importlib import import_module

from stamp.core.artifacts import read_json, read_table, write_table
from stamp.core.errors import run
from stamp.inference.outputs import read_outputs
from stamp.inference.provenance import same_weights
from stamp.report.profiles.model_profile import ProfileInputs
from stamp.report.profiles.rows import as_table
from stamp.scoring.score import ScoreSettings


def main(smk):
    params, model, study = smk.params, smk.wildcards.model, smk.wildcards.study
    source = read_outputs(smk.input.view, smk.input.logits, model)
    pairs = read_table(smk.input.pairs, study=study)
    design = ScoreSettings.from_params(params)
    temperature = read_json(smk.input.calibration)["value"] if params.scale else 1.0
    manifest = str(smk.input.extra_outputs) if smk.input.extra_outputs else None
    material = ProfileInputs.of(source, pairs, design, params.order, temperature, manifest)
    material = replace(material, options=params.options)
    found = import_module(f"stamp.report.analyses.{smk.wildcards.profile}.profile").rows(material)
    metadata = {"model": model, "study": study, "profile": smk.wildcards.profile}
    metadata |= same_weights(
        [smk.input.logits, smk.input.calibration, *([manifest] if manifest else [])]
    )
    write_table(smk.output[0], as_table(model, list(found)), metadata)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
