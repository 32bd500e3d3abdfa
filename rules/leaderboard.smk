"""The leaderboard: one row per model, best score first."""


rule leaderboard:
    """What a reader wants first: every model's rank, score, interval, flags and outcomes."""
    input:
        scores=rules.collect.output.scores,
        outcomes=rules.collect.output.outcomes,
        ranks=rules.correlate.output.ranks,
    output:
        csv=report(
            f"{RESULTS}/{{study}}/leaderboard.csv",
            caption="../workflow/report/leaderboard.rst",
            category="{study}",
            subcategory=MAIN,
            labels={"result": "leaderboard, table"},
        ),
        parquet=f"{RESULTS}/{{study}}/leaderboard.parquet",
    log:
        f"{RESULTS}/{{study}}/logs/leaderboard.log",
    conda:
        ENVIRONMENT
    params:
        models=lambda wildcards: all_described(study_of(wildcards)),
        unavailable=of_study("unavailable"),
        code=code_of("leaderboard.py"),
    script:
        "../workflow/scripts/leaderboard.py"
