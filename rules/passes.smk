"""Further forward passes on the source: changed pictures, dropout, features, maps, steepness."""


def temperature_of(wildcards):
    """The calibration, where passes are of outputs at a temperature and the study scales them."""
    study = study_of(wildcards)
    wanted = "jacobian" in study.kinds and study.calibration["scale"] and not is_given(wildcards)
    return f"{RESULTS}/{study.name}/calibration/{wildcards.model}.json" if wanted else []


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
