"""What each model does on labeled images: at the source, and on every target."""


rule evaluate:
    """Macro-AUROC or top-1 accuracy, overall, per domain and per class."""
    input:
        views=evaluated("view"),
        logits=evaluated("logits"),
    output:
        f"{RESULTS}/{{study}}/evaluations/{{view}}/{{model}}.parquet",
    log:
        f"{RESULTS}/{{study}}/logs/evaluate/{{view}}/{{model}}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(2000),
        runtime=minutes(15),
    params:
        task=of_study("task"),
        classes=of_study("classes"),
        labeled=lambda wildcards: (
            study_of(wildcards).targets[wildcards.view]["classes"]
            if wildcards.view in study_of(wildcards).targets
            else {}
        ),
        merge=lambda wildcards: (
            study_of(wildcards).targets[wildcards.view]["merge"]
            if wildcards.view in study_of(wildcards).targets
            else {}
        ),
        among=lambda wildcards: among_of(study_of(wildcards), wildcards.view),
        streamed=lambda wildcards: (
            wildcards.view in study_of(wildcards).targets
            and study_of(wildcards).targets[wildcards.view]["streamed"]
        ),
        subsets=lambda wildcards: (
            subsets_of(study_of(wildcards)) if wildcards.view == "source" else {}
        ),
        split=lambda wildcards: (
            study_of(wildcards).id["split"]
            if wildcards.view == "source" and study_of(wildcards).id
            else None
        ),
        minimum=of_study("statistics", "minimum"),
        code=code_of("evaluate.py"),
    script:
        "../workflow/scripts/evaluate.py"
