"""Forward passes: the only stage that needs a GPU, and the only one that knows pixels and models."""


rule logits:
    """One forward pass per image of a view."""
    input:
        **pixels_of(None),
        view=f"{RESULTS}/{{study}}/views/{{view}}.parquet",
        weights=weights_of,
        backbone=more_weights_of,
    output:
        f"{RESULTS}/{{study}}/logits/{{view}}/{{model}}.safetensors",
    log:
        f"{RESULTS}/{{study}}/logs/logits/{{view}}/{{model}}.log",
    benchmark:
        f"{RESULTS}/{{study}}/benchmarks/logits/{{view}}/{{model}}.tsv"
    conda:
        ENVIRONMENT
    threads: PLAN.threads
    resources:
        gpu=lambda wildcards: 1 if DEVICE == "cuda" and not model_of(wildcards).precomputed else 0,
        mem_mb=memory(4000),
        runtime=minutes(240),
    params:
        load=lambda wildcards: model_of(wildcards).load,
        versions=lambda wildcards: versions(
            model_of(wildcards).load["source"], model_of(wildcards).load
        ),
        classes=of_study("classes"),
        task=of_study("task"),
        script=script_of("logits"),
        code=lambda wildcards: code_of(script_of("logits")(wildcards), model_of(wildcards).module),
    script:
        "../workflow/scripts/{params.script}"
