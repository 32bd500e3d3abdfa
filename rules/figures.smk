"""Figures, as PNG and PDF."""


rule figure:
    """One figure of a study, with the table that it was drawn from."""
    input:
        scores=rules.collect.output.scores,
        outcomes=rules.collect.output.outcomes,
        correlations=rules.correlate.output.correlations,
        ranks=rules.correlate.output.ranks,
    output:
        png=report(
            f"{RESULTS}/{{study}}/figures/{{figure}}.png",
            caption="../workflow/report/figure.rst",
            category="{study}",
            subcategory=MAIN,
            labels={"result": "{figure}, figure"},
        ),
        pdf=f"{RESULTS}/{{study}}/figures/{{figure}}.pdf",
        csv=f"{RESULTS}/{{study}}/figures/{{figure}}.csv",
    log:
        f"{RESULTS}/{{study}}/logs/figure/{{figure}}.log",
    conda:
        ENVIRONMENT
    params:
        models=lambda wildcards: all_described(study_of(wildcards)),
        texts=lambda wildcards: texts_of(study_of(wildcards)),
        code=lambda wildcards: code_of("figure.py", f"stamp.report.figures.{wildcards.figure}"),
    script:
        "../workflow/scripts/figure.py"


rule training_figure:
    """How the fine-tuned models of a study trained, epoch by epoch."""
    input:
        records=lambda wildcards: expand(
            f"{RESULTS}/{wildcards.study}/trained/{{model}}.json",
            model=[
                key
                for key, model in study_of(wildcards).models.items()
                if model.trainer == "finetune"
            ],
        ),
    output:
        png=report(
            f"{RESULTS}/{{study}}/figures/training.png",
            caption="../workflow/report/training.rst",
            category="{study}",
            subcategory=MAIN,
            labels={"result": "training, figure"},
        ),
        pdf=f"{RESULTS}/{{study}}/figures/training.pdf",
        csv=f"{RESULTS}/{{study}}/figures/training.csv",
    log:
        f"{RESULTS}/{{study}}/logs/figure/training.log",
    conda:
        ENVIRONMENT
    params:
        labels=lambda wildcards: {
            key: model.label
            for key, model in study_of(wildcards).models.items()
            if model.trainer == "finetune"
        },
        texts=lambda wildcards: {
            key: getattr(study_of(wildcards), key) for key in ("title", "notice", "task")
        },
        code=code_of("training_figure.py"),
    script:
        "../workflow/scripts/training_figure.py"
