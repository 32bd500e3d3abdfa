"""What the jobs of a study cost, from their logs."""

from stamp.core.artifacts import write_table
from stamp.core.errors import run
from stamp.report.timings import extra_output_rows, job_rows, table, view_size


def main(smk):
    params, files = smk.params, smk.input
    images = dict(zip(params.views, map(view_size, files.views), strict=True))
    models, views = zip(*params.forwarded, strict=True)
    rows = job_rows("logits", models, params.logits, views, images)
    for stage in ("calibrate", "score", "metrics"):
        rows += job_rows(stage, params.models, params[stage])
    rows += job_rows("agreement_on_the_line", [None] * len(params.lines), params.lines)
    if params.projection_norm:
        rows += job_rows("projection_norm", params.models, params.projection_norm)
    for manifests in (files.extra_outputs, files.target_embeddings):
        if manifests:
            rows += extra_output_rows(dict(zip(params.models, manifests, strict=True)))
    if files.stress_tests:
        manifests = dict(zip(params.models, files.stress_tests, strict=True))
        rows += extra_output_rows(manifests, "stress_tests")
    write_table(smk.output[0], table(rows), {"study": smk.wildcards.study})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
