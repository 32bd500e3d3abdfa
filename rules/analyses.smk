"""Further analyses that a study asks for by name: tables, sentences, and figures of some."""


rule analysis:
    """The table of one analysis, what each model brings to it, and a sentence on it."""
    input:
        scores=rules.collect.output.scores,
        outcomes=rules.collect.output.outcomes,
        evaluations=needed(
            "evaluations",
            lambda wildcards: [f"{RESULTS}/{wildcards.study}/statistics/evaluations.csv"],
        ),
        n_pairs=needed(
            "n_pairs", per_model(f"{RESULTS}/{{study}}/scores/{{model}}.n_pairs.parquet")
        ),
        metrics=needed("metrics", metrics_files),
        costs=needed(
            "costs", lambda wildcards: [f"{RESULTS}/{wildcards.study}/statistics/timings.parquet"]
        ),
        calibrations=needed(
            "calibrations", per_model(f"{RESULTS}/{{study}}/calibration/{{model}}.json")
        ),
        profiles=needed("profiles", profiles_of),
    output:
        csv=report(
            f"{RESULTS}/{{study}}/analyses/{{analysis}}.csv",
            caption="../workflow/report/analysis.rst",
            category="{study}",
            subcategory=OTHERS,
            labels={"result": "{analysis}, table"},
        ),
        models=report(
            f"{RESULTS}/{{study}}/analyses/{{analysis}}_models.csv",
            caption="../workflow/report/analysis.rst",
            category="{study}",
            subcategory=OTHERS,
            labels={"result": "{analysis}, table by model"},
        ),
        text=report(
            f"{RESULTS}/{{study}}/analyses/{{analysis}}.txt",
            caption="../workflow/report/analysis.rst",
            category="{study}",
            subcategory=OTHERS,
            labels={"result": "{analysis}, sentence"},
        ),
    log:
        f"{RESULTS}/{{study}}/logs/analysis/{{analysis}}.log",
    wildcard_constraints:
        analysis=one_of(ANALYSES),
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(4000),
        runtime=minutes(60),
    params:
        models=lambda wildcards: all_described(study_of(wildcards)),
        texts=lambda wildcards: texts_of(study_of(wildcards)),
        settings=lambda wildcards: {
            key: study_of(wildcards).statistics[key]
            for key in ("permutations", "resamples", "level")
        },
        options=lambda wildcards: options_of(study_of(wildcards), wildcards.analysis),
        seed=PLAN.seed,
        code=lambda wildcards: code_of(
            "analysis.py", f"stamp.report.analyses.{wildcards.analysis}.table"
        ),
    script:
        "../workflow/scripts/analysis.py"


rule analysis_figure:
    """The figure of an analysis, drawn from its tables."""
    input:
        csv=rules.analysis.output.csv,
        models=rules.analysis.output.models,
    output:
        png=report(
            f"{RESULTS}/{{study}}/figures/{{analysis}}.png",
            caption="../workflow/report/analysis.rst",
            category="{study}",
            subcategory=OTHERS,
            labels={"result": "{analysis}, figure"},
        ),
        pdf=f"{RESULTS}/{{study}}/figures/{{analysis}}.pdf",
    log:
        f"{RESULTS}/{{study}}/logs/figure/{{analysis}}.log",
    wildcard_constraints:
        analysis=one_of(DRAWN),
    conda:
        ENVIRONMENT
    params:
        texts=lambda wildcards: texts_of(study_of(wildcards)),
        code=lambda wildcards: code_of(
            "analysis_figure.py",
            f"stamp.report.analyses.{wildcards.analysis}.table",
            f"stamp.report.analyses.{wildcards.analysis}.figure",
        ),
    script:
        "../workflow/scripts/analysis_figure.py"
