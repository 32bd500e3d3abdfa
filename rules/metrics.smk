"""Other predictors that STAMP is compared with, from outputs that are there already."""


rule metrics:
    """Every metric of one model: of the source, and estimates for each target."""
    input:
        view=rules.source_view.output[0],
        logits=f"{RESULTS}/{{study}}/logits/source/{{model}}.safetensors",
        calibration=rules.calibrate.output[0],
        views=lambda wildcards: expand(
            f"{RESULTS}/{wildcards.study}/views/{{view}}.parquet",
            view=cached_targets(study_of(wildcards)),
        ),
        targets=lambda wildcards: expand(
            f"{RESULTS}/{wildcards.study}/logits/{{view}}/{wildcards.model}.safetensors",
            view=cached_targets(study_of(wildcards)),
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
        targets=lambda wildcards: cached_targets(study_of(wildcards)),
        labeled=lambda wildcards: {
            key: target["classes"] for key, target in study_of(wildcards).targets.items()
        },
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
        labeled=lambda wildcards: {
            key: target["classes"] for key, target in study_of(wildcards).targets.items()
        },
        code=code_of("lines.py"),
    script:
        "../workflow/scripts/lines.py"
