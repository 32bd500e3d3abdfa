"""Other predictors that STAMP is compared with, from outputs and extra outputs that are there already."""


rule metrics:
    """Every metric of one model: of the source, and estimates for each target."""
    input:
        view=rules.source_view.output[0],
        logits=f"{RESULTS}/{{study}}/logits/source/{{model}}.safetensors",
        calibration=rules.calibrate.output[0],
        pairs=rules.pairs.output[0],
        extra_outputs=extra_outputs_of("extra_outputs", "metric_kinds"),
        target_embeddings=extra_outputs_of("target_embeddings", "target_kinds"),
        views=lambda wildcards: expand(
            f"{RESULTS}/{wildcards.study}/views/{{view}}.parquet",
            view=cached_targets(study_of(wildcards)),
        ),
        targets=lambda wildcards: expand(
            f"{RESULTS}/{wildcards.study}/logits/{{view}}/{wildcards.model}.safetensors",
            view=cached_targets(study_of(wildcards)),
        ),
        streamed_views=lambda wildcards: expand(
            f"{RESULTS}/{wildcards.study}/views/{{view}}.parquet",
            view=streamed_targets(study_of(wildcards)),
        ),
        records=lambda wildcards: expand(
            f"{RESULTS}/{wildcards.study}/predictions/{{view}}/{wildcards.model}.safetensors",
            view=streamed_targets(study_of(wildcards)),
        ),
    output:
        f"{RESULTS}/{{study}}/metrics/{{model}}.parquet",
    log:
        f"{RESULTS}/{{study}}/logs/metrics/{{model}}.log",
    benchmark:
        f"{RESULTS}/{{study}}/benchmarks/metrics/{{model}}.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(4000),
        runtime=minutes(30),
    params:
        task=of_study("task"),
        classes=of_study("classes"),
        scale=of_study("calibration", "scale"),
        semantic=of_study("pairs", "semantic"),
        number=of_study("pairs", "n_pairs"),
        wanted=of_study("metrics"),
        targets=lambda wildcards: cached_targets(study_of(wildcards)),
        streamed=lambda wildcards: streamed_targets(study_of(wildcards)),
        scored=lambda wildcards: scored_of(study_of(wildcards)),
        code=code_of("metrics.py"),
    script:
        "../workflow/scripts/metrics.py"


rule agreement_on_the_line:
    """Estimates for each target from the agreement of all models (ALine)."""
    input:
        view=rules.source_view.output[0],
        logits=per_model(f"{RESULTS}/{{study}}/logits/source/{{model}}.safetensors"),
        calibrations=per_model(f"{RESULTS}/{{study}}/calibration/{{model}}.json"),
        views=lambda wildcards: expand(
            f"{RESULTS}/{wildcards.study}/views/{{view}}.parquet",
            view=cached_targets(study_of(wildcards)),
        ),
        targets=lambda wildcards: expand(
            f"{RESULTS}/{wildcards.study}/logits/{{view}}/{{model}}.safetensors",
            view=cached_targets(study_of(wildcards)),
            model=list(study_of(wildcards).models),
        ),
    output:
        f"{RESULTS}/{{study}}/statistics/agreement_on_the_line.parquet",
    log:
        f"{RESULTS}/{{study}}/logs/agreement_on_the_line.log",
    benchmark:
        f"{RESULTS}/{{study}}/benchmarks/agreement_on_the_line.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(4000),
        runtime=minutes(60),
    params:
        models=lambda wildcards: list(study_of(wildcards).models),
        task=of_study("task"),
        classes=of_study("classes"),
        scale=of_study("calibration", "scale"),
        targets=lambda wildcards: cached_targets(study_of(wildcards)),
        scored=lambda wildcards: scored_of(study_of(wildcards)),
        code=code_of("agreement_on_the_line.py"),
    script:
        "../workflow/scripts/agreement_on_the_line.py"


rule timings:
    """What the jobs of a study cost, from the files that Snakemake wrote while it ran them."""
    input:
        views=lambda wildcards: expand(
            f"{RESULTS}/{wildcards.study}/views/{{view}}.parquet",
            view=forwarded_views(study_of(wildcards)),
        ),
        logits=lambda wildcards: [
            f"{RESULTS}/{wildcards.study}/benchmarks/logits/{view}/{model}.tsv"
            for model, view in forwarded(study_of(wildcards))
        ],
        calibrate=per_model(f"{RESULTS}/{{study}}/benchmarks/calibrate/{{model}}.tsv"),
        score=per_model(f"{RESULTS}/{{study}}/benchmarks/score/{{model}}.tsv"),
        metrics=per_model(f"{RESULTS}/{{study}}/benchmarks/metrics/{{model}}.tsv"),
        agreement_on_the_line=lambda wildcards: (
            f"{RESULTS}/{wildcards.study}/benchmarks/agreement_on_the_line.tsv"
            if study_of(wildcards).agreement_on_the_line
            else []
        ),
        extra_outputs=all_extra_outputs_of("extra_outputs", "metric_kinds"),
        target_embeddings=all_extra_outputs_of("target_embeddings", "target_kinds"),
    output:
        f"{RESULTS}/{{study}}/statistics/timings.parquet",
    log:
        f"{RESULTS}/{{study}}/logs/timings.log",
    conda:
        ENVIRONMENT
    params:
        models=lambda wildcards: list(study_of(wildcards).models),
        views=lambda wildcards: forwarded_views(study_of(wildcards)),
        forwarded=lambda wildcards: forwarded(study_of(wildcards)),
        code=code_of("timings.py"),
    script:
        "../workflow/scripts/timings.py"
