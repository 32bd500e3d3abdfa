"""Extra inference outputs: embeddings, augmented images, MC dropout, Grad-CAM, sensitivity."""


rule extra_outputs:
    """Every extra output of one model that the study's metrics and analyses need.

    The manifest is the rule's output. The large files beside it are kept between runs, each made
    again only when what it was made from has changed.
    """
    input:
        **pixels_of("source"),
        view=rules.source_view.output[0],
        pairs=rules.pairs.output[0],
        weights=lambda wildcards: [] if is_precomputed(wildcards) else weights_of(wildcards),
        backbone=more_weights_of,
        calibration=temperature_of,
    output:
        f"{RESULTS}/{{study}}/extra_outputs/{{model}}.json",
    log:
        f"{RESULTS}/{{study}}/logs/extra_outputs/{{model}}.log",
    benchmark:
        f"{RESULTS}/{{study}}/benchmarks/extra_outputs/{{model}}.tsv"
    conda:
        ENVIRONMENT
    threads: PLAN.threads
    resources:
        gpu=lambda wildcards: 1 if DEVICE == "cuda" and not is_precomputed(wildcards) else 0,
        mem_mb=memory(6000),
        runtime=minutes(480),
    params:
        load=lambda wildcards: model_of(wildcards).load,
        versions=lambda wildcards: versions(
            model_of(wildcards).load["source"], model_of(wildcards).load
        ),
        classes=of_study("classes"),
        kinds=of_study("kinds"),
        settings=of_study("extra_outputs"),
        semantic=of_study("pairs", "semantic"),
        task=of_study("task"),
        seed=PLAN.seed,
        code=lambda wildcards: code_of("extra_outputs.py", model_of(wildcards).module),
    script:
        "../workflow/scripts/extra_outputs.py"


rule target_embeddings:
    """One model's embeddings of target images, where the study's metrics need them.

    Apart from the source's extra outputs, which no target may hold up or change.
    """
    input:
        pixels=pixels_of_targets(".npy"),
        records=pixels_of_targets(".json"),
        views=lambda wildcards: expand(
            f"{RESULTS}/{wildcards.study}/views/{{view}}.parquet",
            view=cached_targets(study_of(wildcards)),
        ),
        weights=lambda wildcards: [] if is_precomputed(wildcards) else weights_of(wildcards),
        backbone=more_weights_of,
    output:
        f"{RESULTS}/{{study}}/target_embeddings/{{model}}.json",
    log:
        f"{RESULTS}/{{study}}/logs/target_embeddings/{{model}}.log",
    benchmark:
        f"{RESULTS}/{{study}}/benchmarks/target_embeddings/{{model}}.tsv"
    conda:
        ENVIRONMENT
    threads: PLAN.threads
    resources:
        gpu=lambda wildcards: 1 if DEVICE == "cuda" and not is_precomputed(wildcards) else 0,
        mem_mb=memory(6000),
        runtime=minutes(240),
    params:
        load=lambda wildcards: model_of(wildcards).load,
        versions=lambda wildcards: versions(
            model_of(wildcards).load["source"], model_of(wildcards).load
        ),
        classes=of_study("classes"),
        targets=lambda wildcards: cached_targets(study_of(wildcards)),
        kinds=of_study("target_kinds"),
        settings=of_study("extra_outputs"),
        seed=PLAN.seed,
        code=lambda wildcards: code_of("target_embeddings.py", model_of(wildcards).module),
    script:
        "../workflow/scripts/target_embeddings.py"
