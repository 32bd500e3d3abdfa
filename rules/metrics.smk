"""Other predictors that STAMP is compared with, from outputs and extra outputs that are there already."""


rule metrics:
    """Every metric of one model: of the source, and for each target.

    Beside them its decisions, for the agreement with other models, which then reads no logits.
    """
    input:
        view=rules.source_view.output[0],
        logits=f"{RESULTS}/{{study}}/logits/source/{{model}}.safetensors",
        calibration=rules.calibrate.output[0],
        pairs=rules.pairs.output[0],
        extra_outputs=file_if("metric_kinds", "extra_outputs/{model}.json"),
        target_embeddings=file_if("target_kinds", "target_embeddings/{model}.json"),
        stress_tests=file_if("metric_stress_changes", "stress_tests/{model}.json"),
        views=files_of("views/{view}.parquet", view="cached_targets"),
        targets=files_of("logits/{view}/{model}.safetensors", view="cached_targets"),
        streamed_views=files_of("views/{view}.parquet", view="streamed_targets"),
        predictions=files_of("predictions/{view}/{model}.safetensors", view="streamed_targets"),
    output:
        metrics=f"{RESULTS}/{{study}}/metrics/{{model}}.parquet",
        decisions=f"{RESULTS}/{{study}}/decisions/{{model}}.safetensors",
    log:
        f"{RESULTS}/{{study}}/logs/metrics/{{model}}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(4000),
        runtime=minutes(30),
    params:
        task=of_study("task"),
        classes=of_study("classes"),
        scale=of_study("calibration", "scale"),
        semantic=of_study("pairs", "semantic"),
        random=of_study("pairs", "random"),
        pool=of_study("pairs", "pool"),
        estimator=of_study("estimator"),
        number=of_study("pairs", "n_pairs"),
        wanted=of_study("metrics"),
        packages=of_study("metric_packages"),
        targets=of_study("cached_targets"),
        streamed=of_study("streamed_targets"),
        scored=of_study("scored_classes"),
        minimum=of_study("statistics", "minimum"),
        code=code_of("metrics.py"),
    script:
        "../workflow/scripts/metrics.py"


rule projection_norm:
    """How differently a model learns its own answers to each target and to the source (optional)."""
    input:
        **pixels_of("source"),
        view=rules.source_view.output[0],
        target_pixels=target_pixels_of("pixels"),
        target_records=target_pixels_of("record"),
        target_images=target_pixels_of("images"),
        views=files_of("views/{view}.parquet", view="cached_targets"),
        weights=weights_of,
        trained=trained_of,
        further=further_weights_of,
    output:
        f"{RESULTS}/{{study}}/projection_norm/{{model}}.parquet",
    log:
        f"{RESULTS}/{{study}}/logs/projection_norm/{{model}}.log",
    conda:
        ENVIRONMENT
    threads: decoders_of("source")
    resources:
        gpu=gpus,
        mem_mb=memory(6000),
        runtime=minutes(480),
    params:
        load=of_model("load"),
        versions=of_model("versions"),
        files=digests_of(own_files),
        pixels=decoding_of("source"),
        target_pixels=target_decoding_of,
        task=of_study("task"),
        classes=of_study("classes"),
        targets=of_study("cached_targets"),
        images=of_study("extra_outputs", "images"),
        seed=PLAN.seed,
        code=code_of("projection_norm.py", of_model("module"), opener_of("source")),
    script:
        "../workflow/scripts/projection_norm.py"


rule agreement_on_the_line:
    """Estimates for each target from the agreement of all models (ALine)."""
    input:
        views=files_of("views/{view}.parquet", view="targets"),
        decisions=files_of("decisions/{model}.safetensors", model="models"),
    output:
        f"{RESULTS}/{{study}}/statistics/agreement_on_the_line.parquet",
    log:
        f"{RESULTS}/{{study}}/logs/agreement_on_the_line.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(4000),
        runtime=minutes(60),
    params:
        models=of_study("model_keys"),
        task=of_study("task"),
        classes=of_study("classes"),
        targets=lambda wildcards: list(study_of(wildcards).targets),
        scored=of_study("scored_classes"),
        code=code_of("agreement_on_the_line.py"),
    script:
        "../workflow/scripts/agreement_on_the_line.py"


rule timings:
    """What the jobs of a study cost, from the last lines of their logs, where those are kept."""
    input:
        views=files_of("views/{view}.parquet", view="forwarded_views"),
        calibrations=files_of("calibration/{model}.json", model="models"),
        scores=files_of("scores/{model}.parquet", model="models"),
        evaluations=files_of("evaluations/source/{model}.parquet", model="models"),
        metrics=files_of("metrics/{model}.parquet", model="models"),
        lines=file_if("agreement_on_the_line", "statistics/agreement_on_the_line.parquet"),
        projection_norms=files_if(
            "projection_norm", "projection_norm/{model}.parquet", model="models"
        ),
        extra_outputs=files_if("metric_kinds", "extra_outputs/{model}.json", model="models"),
        target_embeddings=files_if("target_kinds", "target_embeddings/{model}.json", model="models"),
        stress_tests=files_if("metric_stress_changes", "stress_tests/{model}.json", model="models"),
    output:
        f"{RESULTS}/{{study}}/statistics/timings.parquet",
    log:
        f"{RESULTS}/{{study}}/logs/timings.log",
    conda:
        ENVIRONMENT
    params:
        models=of_study("model_keys"),
        views=of_study("forwarded_views"),
        forwarded=of_study("forwarded"),
        # no inputs: a log that somebody deletes must not run a model again
        logits=files_of("logs/logits/{view}/{model}.log", model="models", view="forwarded_views"),
        calibrate=files_of("logs/calibrate/{model}.log", model="models"),
        score=files_of("logs/score/{model}.log", model="models"),
        metrics=files_of("logs/metrics/{model}.log", model="models"),
        lines=files_if("agreement_on_the_line", "logs/agreement_on_the_line.log"),
        projection_norm=files_if(
            "projection_norm", "logs/projection_norm/{model}.log", model="models"
        ),
        code=code_of("timings.py"),
    script:
        "../workflow/scripts/timings.py"
