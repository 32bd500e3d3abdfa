"""Stress tests: labeled source images under changes that keep the label."""


rule stress_tests:
    """One model on labeled source images under each change of the study.

    As in `extra_outputs`, the large files beside the manifest are kept between runs: a further
    change runs its own images only.
    """
    input:
        **pixels_of("source"),
        view=rules.source_view.output[0],
        weights=weights_of,
        trained=trained_of,
        further=further_weights_of,
    output:
        f"{RESULTS}/{{study}}/stress_tests/{{model}}.json",
    log:
        f"{RESULTS}/{{study}}/logs/stress_tests/{{model}}.log",
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
        pixels=decoding_of("source"),
        batch=batch_size,
        numerics=PLAN.inference.numerics,
        classes=of_study("classes"),
        task=of_study("task"),
        changes=codes_of_changes,
        images=of_study("stress", "images"),
        split=lambda wildcards: study_of(wildcards).evaluated_split("source"),
        seed=PLAN.seed,
        code=code_of("stress_tests.py", of_model("module"), opener_of("source")),
    script:
        "../workflow/scripts/stress_tests.py"
