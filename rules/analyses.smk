"""Further analyses that a study asks for by name: tables, sentences, and figures of some."""


rule analysis:
    """The table of one analysis, what each model brings to it, and a sentence on it."""
    input:
        scores=rules.collect.output.scores,
        outcomes=rules.collect.output.outcomes,
        evaluations=needed("evaluations", files_of("statistics/evaluations.csv")),
        n_pairs=needed("n_pairs", files_of("scores/{model}.n_pairs.parquet", model="models")),
        metrics=needed("metrics", metrics_files),
        costs=needed("costs", files_of("statistics/timings.parquet")),
        calibrations=needed("calibrations", files_of("calibration/{model}.json", model="models")),
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
        models=of_study("described_models"),
        texts=of_study("texts"),
        settings=of_study("test_settings"),
        options=at_view("analysis_options", "analysis"),
        seed=PLAN.seed,
        code=code_of("analysis.py", "stamp.report.analyses.{analysis}.table"),
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
        texts=of_study("texts"),
        code=code_of(
            "analysis_figure.py",
            "stamp.report.analyses.{analysis}.table",
            "stamp.report.analyses.{analysis}.figure",
        ),
    script:
        "../workflow/scripts/analysis_figure.py"
