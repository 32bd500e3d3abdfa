"""Targets that are streamed: no pixel cache, and one prediction per image instead of its logits."""


rule predictions:
    """What a model predicts for every image of a streamed target."""
    input:
        view=f"{RESULTS}/{{study}}/views/{{view}}.parquet",
        images=lambda wildcards: [] if model_of(wildcards).precomputed else images_of(wildcards),
        weights=weights_of,
        trained=trained_of,
        further=further_weights_of,
    output:
        f"{RESULTS}/{{study}}/predictions/{{view}}/{{model}}.safetensors",
    log:
        f"{RESULTS}/{{study}}/logs/predictions/{{view}}/{{model}}.log",
    conda:
        ENVIRONMENT
    threads: max(PLAN.threads, 4)
    resources:
        gpu=gpus,
        mem_mb=memory(4000),
        runtime=minutes(2880),
    params:
        load=of_model("load"),
        versions=of_model("versions"),
        files=digests_of(own_files),
        preprocessing=of_model("uncropped"),
        border=lambda wildcards: PLAN.border(study_of(wildcards), wildcards.view),
        content=lambda wildcards: PLAN.edited_images(
            *study_of(wildcards).view(wildcards.view)["datasets"]
        ),
        classes=of_study("classes"),
        among=at_view("classes_among"),
        task=of_study("task"),
        script=of_model("predictions_script"),
        code=code_of(of_model("predictions_script"), of_model("module")),
    script:
        "../workflow/scripts/{params.script}"
