"""STAMP scores: of all classes, and of the classes that a target is labeled for."""


rule score:
    """STAMP of one model with its parts, its interval and its health flags, and the pairs behind it.

    Beside the pairs stands the metadata of the logits, for the model's card: the page then reads no
    logits, which Snakemake would read whole for their checksums.
    """
    input:
        view=rules.source_view.output[0],
        pairs=rules.pairs.output[0],
        logits=f"{RESULTS}/{{study}}/logits/source/{{model}}.safetensors",
        calibration=rules.calibrate.output[0],
    output:
        scores=f"{RESULTS}/{{study}}/scores/{{model}}.parquet",
        n_pairs=f"{RESULTS}/{{study}}/scores/{{model}}.n_pairs.parquet",
        draws=f"{RESULTS}/{{study}}/scores/{{model}}.draws.safetensors",
        examples=f"{RESULTS}/{{study}}/pair_examples/{{model}}.json",
    log:
        f"{RESULTS}/{{study}}/logs/score/{{model}}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(2000),
        runtime=minutes(15),
    params:
        task=of_study("task"),
        classes=of_study("classes"),
        semantic=of_study("pairs", "semantic"),
        random=of_study("pairs", "random"),
        pool=of_study("pairs", "pool"),
        estimator=of_study("estimator"),
        number=of_study("pairs", "n_pairs"),
        n_pairs_sweep=of_study("pairs", "scored_numbers"),
        scale=of_study("calibration", "scale"),
        leaks=lambda wildcards: study_of(wildcards).leaks(wildcards.model),
        resamples=of_study("statistics", "resamples"),
        level=of_study("statistics", "level"),
        seed=PLAN.seed,
        code=code_of("score.py"),
    script:
        "../workflow/scripts/score.py"


rule class_matched_score:
    """STAMP over the classes that each domain of a target is labeled for."""
    input:
        view=rules.source_view.output[0],
        pairs=rules.pairs.output[0],
        logits=f"{RESULTS}/{{study}}/logits/source/{{model}}.safetensors",
        calibration=rules.calibrate.output[0],
    output:
        f"{RESULTS}/{{study}}/class_matched_scores/{{target}}/{{model}}.parquet",
    log:
        f"{RESULTS}/{{study}}/logs/class_matched_scores/{{target}}/{{model}}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(2000),
        runtime=minutes(15),
    params:
        task=of_study("task"),
        classes=of_study("classes"),
        matched=at_view("labeled_classes", "target"),
        merge=at_view("merged_classes", "target"),
        semantic=of_study("pairs", "semantic"),
        random=of_study("pairs", "random"),
        pool=of_study("pairs", "pool"),
        estimator=of_study("estimator"),
        number=of_study("pairs", "n_pairs"),
        scale=of_study("calibration", "scale"),
        resamples=of_study("statistics", "resamples"),
        level=of_study("statistics", "level"),
        seed=PLAN.seed,
        code=code_of("class_matched_score.py"),
    script:
        "../workflow/scripts/class_matched_score.py"
