"""What a model's cached outputs show beyond its score, where an analysis of the study asks for it."""

PROFILED = {one.profile for one in ANALYSES.values() if one.profile}


rule model_profile:
    """One profile of one model: from its outputs on the pool, and from extra outputs if it needs any."""
    input:
        view=rules.source_view.output[0],
        pairs=rules.pairs.output[0],
        logits=f"{RESULTS}/{{study}}/logits/source/{{model}}.safetensors",
        calibration=rules.calibrate.output[0],
        extra_outputs=profile_outputs,
    output:
        f"{RESULTS}/{{study}}/profiles/{{profile}}/{{model}}.parquet",
    log:
        f"{RESULTS}/{{study}}/logs/profiles/{{profile}}/{{model}}.log",
    wildcard_constraints:
        profile=one_of(PROFILED),
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(4000),
        runtime=minutes(30),
    params:
        task=of_study("task"),
        classes=of_study("classes"),
        semantic=of_study("pairs", "semantic"),
        random=of_study("pairs", "random"),
        pool=of_study("pairs", "pool"),
        estimator=of_study("estimator"),
        number=of_study("pairs", "n_pairs"),
        order=of_study("pairs", "order"),
        scale=of_study("calibration", "scale"),
        resamples=of_study("statistics", "resamples"),
        level=of_study("statistics", "level"),
        options=at_view("profile_options", "profile"),
        seed=PLAN.seed,
        code=code_of("model_profile.py", "stamp.report.analyses.{profile}.profile"),
    script:
        "../workflow/scripts/model_profile.py"
