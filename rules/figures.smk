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
            labels={"figure": "{figure}"},
        ),
        pdf=f"{RESULTS}/{{study}}/figures/{{figure}}.pdf",
        csv=f"{RESULTS}/{{study}}/figures/{{figure}}.csv",
    log:
        f"{RESULTS}/{{study}}/logs/figure/{{figure}}.log",
    conda:
        ENVIRONMENT
    params:
        models=lambda wildcards: described(study_of(wildcards)),
        texts=lambda wildcards: {
            "title": study_of(wildcards).title,
            "notice": study_of(wildcards).notice,
            "task": study_of(wildcards).task,
            "level": study_of(wildcards).statistics["level"],
            "targets": {
                key: target["title"] for key, target in study_of(wildcards).targets.items()
            },
        },
        code=lambda wildcards: code_of("figure.py", f"stamp.figures.{wildcards.figure}"),
    script:
        "../workflow/scripts/figure.py"
