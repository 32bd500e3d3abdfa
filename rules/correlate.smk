"""All models of a study together: how the score relates to what happened on the targets."""


rule collect:
    """One table of the models' scores and one of their outcomes."""
    input:
        scores=per_model(f"{RESULTS}/{{study}}/scores/{{model}}.parquet"),
        calibrations=per_model(f"{RESULTS}/{{study}}/calibration/{{model}}.json"),
        evaluations=evaluations,
        matched=matches,
    output:
        scores=f"{RESULTS}/{{study}}/statistics/scores.parquet",
        outcomes=f"{RESULTS}/{{study}}/statistics/outcomes.parquet",
        evaluations=f"{RESULTS}/{{study}}/statistics/evaluations.csv",
    log:
        f"{RESULTS}/{{study}}/logs/collect.log",
    conda:
        ENVIRONMENT
    params:
        models=lambda wildcards: list(study_of(wildcards).models),
        outcomes=lambda wildcards: {
            key: target["outcomes"] for key, target in study_of(wildcards).targets.items()
        },
        exclude=of_study("calibration", "exclude"),
        contaminated=lambda wildcards: study_of(wildcards).contaminated(),
        relabelled=lambda wildcards: [
            key for key, target in study_of(wildcards).targets.items() if target["relabelled"]
        ],
        code=code_of("collect.py"),
    script:
        "../workflow/scripts/collect.py"


rule correlate:
    """Rank correlations with tests and intervals, rank intervals, and who outranks whom."""
    input:
        scores=rules.collect.output.scores,
        outcomes=rules.collect.output.outcomes,
        draws=per_model(f"{RESULTS}/{{study}}/scores/{{model}}.draws.safetensors"),
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
        settings=lambda wildcards: {
            key: study_of(wildcards).statistics[key]
            for key in ("permutations", "resamples", "level")
        },
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
        texts=lambda wildcards: texts_of(study_of(wildcards)),
        code=code_of("main_table.py"),
    script:
        "../workflow/scripts/main_table.py"
