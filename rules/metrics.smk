"""Other predictors that STAMP is compared with, from outputs and passes that are there already."""


rule metrics:
    """Every metric of one model: of the source, and estimates for each target."""
    input:
        view=rules.source_view.output[0],
        logits=f"{RESULTS}/{{study}}/logits/source/{{model}}.safetensors",
        calibration=rules.calibrate.output[0],
        pairs=rules.pairs.output[0],
        passes=passes_of("passes", "metric_kinds"),
        target_passes=passes_of("target_passes", "target_kinds"),
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
            f"{RESULTS}/{wildcards.study}/records/{{view}}/{wildcards.model}.safetensors",
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


rule lines:
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
        f"{RESULTS}/{{study}}/statistics/lines.parquet",
    log:
        f"{RESULTS}/{{study}}/logs/lines.log",
    benchmark:
        f"{RESULTS}/{{study}}/benchmarks/lines.tsv"
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
        code=code_of("lines.py"),
    script:
        "../workflow/scripts/lines.py"


rule costs:
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
        lines=lambda wildcards: (
            f"{RESULTS}/{wildcards.study}/benchmarks/lines.tsv"
            if study_of(wildcards).lines
            else []
        ),
        passes=all_passes_of("passes", "metric_kinds"),
        target_passes=all_passes_of("target_passes", "target_kinds"),
    output:
        f"{RESULTS}/{{study}}/statistics/costs.parquet",
    log:
        f"{RESULTS}/{{study}}/logs/costs.log",
    conda:
        ENVIRONMENT
    params:
        models=lambda wildcards: list(study_of(wildcards).models),
        views=lambda wildcards: forwarded_views(study_of(wildcards)),
        forwarded=lambda wildcards: forwarded(study_of(wildcards)),
        code=code_of("costs.py"),
    script:
        "../workflow/scripts/costs.py"
