"""The pairs behind one model's score, as a small record for the page."""

from stamp.core.artifacts import array_metadata, read_json, read_table, write_json
from stamp.core.errors import run
from stamp.inference.outputs import read_outputs
from stamp.scoring.pair_examples import PairExampleSettings, pair_examples


def main(smk):
    model, study = smk.wildcards.model, smk.wildcards.study
    source = read_outputs(smk.input.view, smk.input.logits, model)
    pairs = read_table(smk.input.pairs, study=study)
    fitted = read_json(smk.input.calibration)["value"]
    settings = PairExampleSettings.from_params(smk.params)
    found = pair_examples(source.only("pool"), pairs, settings, fitted)
    made_with = array_metadata(smk.input.logits)
    write_json(smk.output[0], {"model": model, "study": study, "made_with": made_with, **found})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
