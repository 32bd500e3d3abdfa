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
        weights=weights_of,
        trained=trained_of,
        further=further_weights_of,
        calibration=temperature_of,
    output:
        f"{RESULTS}/{{study}}/extra_outputs/{{model}}.json",
    log:
        f"{RESULTS}/{{study}}/logs/extra_outputs/{{model}}.log",
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
        batch=batch_size,
        numerics=PLAN.inference.numerics,
        classes=of_study("classes"),
        kinds=of_study("kinds"),
        settings=of_study("extra_outputs", "settings"),
        semantic=of_study("pairs", "semantic"),
        task=of_study("task"),
        seed=PLAN.seed,
        code=code_of("extra_outputs.py", of_model("module"), opener_of("source")),
    script:
        "../workflow/scripts/extra_outputs.py"


rule target_embeddings:
    """One model's embeddings of target images, where the study's metrics need them.

    Apart from the source's extra outputs, which no target may hold up or change.
    """
    input:
        pixels=target_pixels_of("pixels"),
        records=target_pixels_of("record"),
        images=target_pixels_of("images"),
        views=files_of("views/{view}.parquet", view="cached_targets"),
        weights=weights_of,
        trained=trained_of,
        further=further_weights_of,
    output:
        f"{RESULTS}/{{study}}/target_embeddings/{{model}}.json",
    log:
        f"{RESULTS}/{{study}}/logs/target_embeddings/{{model}}.log",
    conda:
        ENVIRONMENT
    threads: decoders_of("source")
    resources:
        gpu=gpus,
        mem_mb=memory(6000),
        runtime=minutes(240),
    params:
        load=of_model("load"),
        versions=of_model("versions"),
        files=digests_of(own_files),
        pixels=target_decoding_of,
        batch=batch_size,
        numerics=PLAN.inference.numerics,
        classes=of_study("classes"),
        targets=of_study("cached_targets"),
        kinds=of_study("target_kinds"),
        settings=of_study("extra_outputs", "settings"),
        seed=PLAN.seed,
        code=code_of("target_embeddings.py", of_model("module"), opener_of("source")),
    script:
        "../workflow/scripts/target_embeddings.py"
