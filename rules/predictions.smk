"""Targets that are streamed: no pixel cache, and one prediction per image instead of its logits."""


rule stream:
    """A streamed target's images decoded once for several models of one preprocessing.

    What it computes lies where the models' own jobs resume. The models are no reason to run it
    again: one that is added later finds the record there, and runs alone.
    """
    input:
        view=f"{RESULTS}/{{study}}/views/{{view}}.parquet",
        images=images_of,
    output:
        f"{RESULTS}/{{study}}/streams/{{view}}/{{preprocessing}}.json",
    log:
        f"{RESULTS}/{{study}}/logs/stream/{{view}}/{{preprocessing}}.log",
    wildcard_constraints:
        preprocessing=one_of(PLAN.streamed_preprocessings),
    conda:
        ENVIRONMENT
    threads: max(PLAN.threads, DECODERS)
    resources:
        gpu=GPU,
        mem_mb=memory(8000),
        runtime=minutes(2880),
    params:
        shared=streamed_settings,
        models=streamed_models,
        folder=lambda wildcards, output: f"{RESULTS}/{wildcards.study}/predictions/{wildcards.view}",
        most=lambda wildcards, output: PLAN.inference.streamed_models,
        batch=batch_size,
        numerics=PLAN.inference.numerics,
        code=code_of("predictions.py"),
    script:
        "../workflow/scripts/stream.py"


rule predictions:
    """What a model predicts for every image of a streamed target."""
    input:
        view=f"{RESULTS}/{{study}}/views/{{view}}.parquet",
        images=lambda wildcards: [] if model_of(wildcards).precomputed else images_of(wildcards),
        own=lambda wildcards: [ancient(path) for path in staged_images(wildcards)],
        weights=weights_of,
        trained=trained_of,
        further=further_weights_of,
        stream=stream_of,
    output:
        f"{RESULTS}/{{study}}/predictions/{{view}}/{{model}}.safetensors",
    log:
        f"{RESULTS}/{{study}}/logs/predictions/{{view}}/{{model}}.log",
    conda:
        ENVIRONMENT
    threads: max(PLAN.threads, DECODERS)
    resources:
        gpu=gpus,
        mem_mb=memory(4000),
        runtime=minutes(2880),
    params:
        **run_staged(of_model("predictions_script"), own=staged_images, weights_further=own_files),
        load=of_model("load"),
        versions=of_model("versions"),
        files=digests_of(own_files),
        batch=batch_size,
        numerics=PLAN.inference.numerics,
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
        "../workflow/scripts/{params.runs}"
