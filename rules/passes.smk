"""Further forward passes: changed pictures, dropout, features, maps, steepness; targets' features."""


rule passes:
    """Every kind of pass that the study's metrics and analyses need, of one model.

    The manifest is the rule's output. The large files beside it are kept between runs, each made
    again only when what it was made from has changed.
    """
    input:
        **pixels_of("source"),
        view=rules.source_view.output[0],
        pairs=rules.pairs.output[0],
        weights=lambda wildcards: [] if is_given(wildcards) else weights_of(wildcards),
        backbone=more_weights_of,
        calibration=temperature_of,
    output:
        f"{RESULTS}/{{study}}/passes/{{model}}.json",
    log:
        f"{RESULTS}/{{study}}/logs/passes/{{model}}.log",
    benchmark:
        f"{RESULTS}/{{study}}/benchmarks/passes/{{model}}.tsv"
    conda:
        ENVIRONMENT
    threads: PLAN.threads
    resources:
        gpu=lambda wildcards: 1 if DEVICE == "cuda" and not is_given(wildcards) else 0,
        mem_mb=memory(6000),
        runtime=minutes(480),
    params:
        load=lambda wildcards: model_of(wildcards).load,
        versions=lambda wildcards: versions(
            model_of(wildcards).load["source"], model_of(wildcards).load
        ),
        classes=of_study("classes"),
        kinds=of_study("kinds"),
        settings=of_study("passes"),
        semantic=of_study("pairs", "semantic"),
        task=of_study("task"),
        seed=PLAN.seed,
        code=lambda wildcards: code_of("passes.py", model_of(wildcards).module),
    script:
        "../workflow/scripts/passes.py"


rule target_passes:
    """What the study's metrics need of the targets' pictures beyond logits, of one model.

    Apart from the source's passes, which no target may hold up or change.
    """
    input:
        pixels=pixels_of_targets(".npy"),
        records=pixels_of_targets(".json"),
        views=lambda wildcards: expand(
            f"{RESULTS}/{wildcards.study}/views/{{view}}.parquet",
            view=cached_targets(study_of(wildcards)),
        ),
        weights=lambda wildcards: [] if is_given(wildcards) else weights_of(wildcards),
        backbone=more_weights_of,
    output:
        f"{RESULTS}/{{study}}/target_passes/{{model}}.json",
    log:
        f"{RESULTS}/{{study}}/logs/target_passes/{{model}}.log",
    benchmark:
        f"{RESULTS}/{{study}}/benchmarks/target_passes/{{model}}.tsv"
    conda:
        ENVIRONMENT
    threads: PLAN.threads
    resources:
        gpu=lambda wildcards: 1 if DEVICE == "cuda" and not is_given(wildcards) else 0,
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
        settings=of_study("passes"),
        seed=PLAN.seed,
        code=lambda wildcards: code_of("target_passes.py", model_of(wildcards).module),
    script:
        "../workflow/scripts/target_passes.py"
