"""All models of a study together: how the score relates to what happened on the targets."""


rule collect:
    """One table of the models' scores and one of their outcomes."""
    input:
        scores=files_of("scores/{model}.parquet", model="models"),
        calibrations=files_of("calibration/{model}.json", model="models"),
        evaluations=files_of(
            "evaluations/{view}/{model}.parquet", view="outcome_views", model="models"
        ),
        matched=files_of(
            "class_matched_scores/{target}/{model}.parquet",
            target="matched_targets",
            model="models",
        ),
    output:
        scores=f"{RESULTS}/{{study}}/statistics/scores.parquet",
        outcomes=f"{RESULTS}/{{study}}/statistics/outcomes.parquet",
        evaluations=f"{RESULTS}/{{study}}/statistics/evaluations.csv",
    log:
        f"{RESULTS}/{{study}}/logs/collect.log",
    conda:
        ENVIRONMENT
    params:
        models=of_study("model_keys"),
        outcomes=of_study("outcomes"),
        class_mix=of_study("class_mix"),
        exclude=of_study("calibration", "exclude"),
        contaminated=of_study("contaminated"),
        for_reference=of_study("for_reference"),
        trained_on=of_study("trained_on"),
        level=of_study("statistics", "level"),
        relabelled=of_study("relabelled"),
        code=code_of("collect.py"),
    script:
        "../workflow/scripts/collect.py"


rule correlate:
    """Rank correlations with tests and intervals, rank intervals, and who outranks whom."""
    input:
        scores=rules.collect.output.scores,
        outcomes=rules.collect.output.outcomes,
        draws=files_of("scores/{model}.draws.safetensors", model="models"),
    output:
        correlations=report(
            f"{RESULTS}/{{study}}/statistics/correlations.csv",
            caption="../workflow/report/correlations.rst",
            category="{study}",
            subcategory=MAIN,
            labels={"result": "correlations, table"},
        ),
        ranks=f"{RESULTS}/{{study}}/statistics/ranks.csv",
        outranks=f"{RESULTS}/{{study}}/statistics/outranks.csv",
    log:
        f"{RESULTS}/{{study}}/logs/correlate.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(2000),
        runtime=minutes(60),
    params:
        settings=of_study("test_settings"),
        seed=PLAN.seed,
        code=code_of("correlate.py"),
    script:
        "../workflow/scripts/correlate.py"


rule main_table:
    """The table a paper prints: rho, interval, p and n of each target, the source metric beside it."""
    input:
        rules.correlate.output.correlations,
    output:
        csv=report(
            f"{RESULTS}/{{study}}/statistics/main.csv",
            caption="../workflow/report/main.rst",
            category="{study}",
            subcategory=MAIN,
            labels={"result": "main, table"},
        ),
        markdown=f"{RESULTS}/{{study}}/statistics/main.md",
    log:
        f"{RESULTS}/{{study}}/logs/main_table.log",
    conda:
        ENVIRONMENT
    params:
        texts=of_study("texts"),
        code=code_of("main_table.py"),
    script:
        "../workflow/scripts/main_table.py"
