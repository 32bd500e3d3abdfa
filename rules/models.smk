"""Models that a rule trains."""


rule train:
    """A network trained on the source's train split, by the recipe in its zoo entry."""
    input:
        **pixels_of("train"),
        view=f"{RESULTS}/{{study}}/views/train.parquet",
    output:
        weights=f"{RESULTS}/{{study}}/trained/{{model}}.safetensors",
        record=f"{RESULTS}/{{study}}/trained/{{model}}.json",
    log:
        f"{RESULTS}/{{study}}/logs/train/{{model}}.log",
    benchmark:
        f"{RESULTS}/{{study}}/benchmarks/train/{{model}}.tsv"
    conda:
        ENVIRONMENT
    threads: PLAN.threads
    resources:
        mem_mb=2000,
    params:
        load=lambda wildcards: model_of(wildcards).load,
        versions=lambda wildcards: versions(model_of(wildcards).load["source"]),
        task=of_study("task"),
        classes=of_study("classes"),
        seed=seed_of,
        code=lambda wildcards: code_of("train.py", model_of(wildcards).module),
    script:
        "../workflow/scripts/train.py"
