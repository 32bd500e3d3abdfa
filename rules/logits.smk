"""Forward passes: the only stage that needs a GPU, and the only one that knows pixels and models."""


rule logits:
    """One forward pass per image of a view."""
    input:
        **pixels_of(),
        view=f"{RESULTS}/{{study}}/views/{{view}}.parquet",
        weights=weights_of,
        trained=trained_of,
        further=further_weights_of,
    output:
        f"{RESULTS}/{{study}}/logits/{{view}}/{{model}}.safetensors",
    log:
        f"{RESULTS}/{{study}}/logs/logits/{{view}}/{{model}}.log",
    conda:
        ENVIRONMENT
    threads: decoders_of()
    resources:
        gpu=gpus,
        mem_mb=memory(4000),
        runtime=minutes(240),
    params:
        **run_staged(of_model("logits_script"), weights_further=own_files),
        load=of_model("load"),
        versions=of_model("versions"),
        files=digests_of(own_files),
        pixels=decoding_of(),
        batch=batch_size,
        numerics=PLAN.inference.numerics,
        classes=of_study("classes"),
        task=of_study("task"),
        script=of_model("logits_script"),
        code=code_of(of_model("logits_script"), of_model("module"), opener_of()),
    script:
        "../workflow/scripts/{params.runs}"
