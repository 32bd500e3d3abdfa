"""Targets that are streamed: no pixel cache, and one prediction per image instead of logits."""


rule predictions:
    """What a model predicts for every image of a streamed target."""
    input:
        view=f"{RESULTS}/{{study}}/views/{{view}}.parquet",
        images=lambda wildcards: [
            ancient(folder)
            for name in study_of(wildcards).view(wildcards.view)["datasets"]
            for folder in images_of(name)
            if not model_of(wildcards).precomputed
        ],
        weights=weights_of,
        backbone=more_weights_of,
    output:
        f"{RESULTS}/{{study}}/predictions/{{view}}/{{model}}.safetensors",
    log:
        f"{RESULTS}/{{study}}/logs/predictions/{{view}}/{{model}}.log",
    benchmark:
        f"{RESULTS}/{{study}}/benchmarks/predictions/{{view}}/{{model}}.tsv"
    conda:
        ENVIRONMENT
    threads: max(PLAN.threads, 4)
    resources:
        gpu=lambda wildcards: 1 if DEVICE == "cuda" and not model_of(wildcards).precomputed else 0,
        mem_mb=memory(4000),
        runtime=minutes(2880),
    params:
        load=lambda wildcards: model_of(wildcards).load,
        versions=lambda wildcards: versions(
            model_of(wildcards).load["source"], model_of(wildcards).load
        ),
        # streamed images are at the models' scale already: never cropped, resized only to the size
        preprocessing=lambda wildcards: {
            key: value
            for key, value in model_of(wildcards).preprocessing.settings.items()
            if key != "crop"
        },
        border=lambda wildcards: border_of(study_of(wildcards), wildcards.view),
        content=lambda wildcards: edited(
            fingerprint.of_images, study_of(wildcards).view(wildcards.view)["datasets"]
        ),
        classes=of_study("classes"),
        among=lambda wildcards: among_of(study_of(wildcards), wildcards.view),
        task=of_study("task"),
        script=script_of("predictions"),
        code=lambda wildcards: code_of(
            script_of("predictions")(wildcards), model_of(wildcards).module
        ),
    script:
        "../workflow/scripts/{params.script}"
