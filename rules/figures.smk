"""Figures, as PNG and PDF."""


rule figure:
    """One figure of a study, with the table that it was drawn from."""
    input:
        scores=rules.collect.output.scores,
        outcomes=rules.collect.output.outcomes,
        correlations=rules.correlate.output.correlations,
        ranks=rules.correlate.output.ranks,
        outranks=rules.correlate.output.outranks,
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
    wildcard_constraints:
        figure=one_of(FIGURES),
    conda:
        ENVIRONMENT
    params:
        models=of_study("described_models"),
        texts=of_study("texts"),
        code=code_of("figure.py", "stamp.report.figures.{figure}"),
    script:
        "../workflow/scripts/figure.py"


rule training_figure:
    """How the fine-tuned models of a study trained, epoch by epoch."""
    input:
        records=files_of("trained/{model}.json", model="finetuned"),
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
        labels=of_study("finetuned"),
        texts=of_study("headings"),
        code=code_of("training_figure.py"),
    script:
        "../workflow/scripts/training_figure.py"


rule pair_distances:
    """How far apart the outputs of each model lie on its semantic and random pairs."""
    input:
        files_of("pair_examples/{model}.json", model="models"),
    output:
        png=report(
            f"{RESULTS}/{{study}}/figures/pair_distances.png",
            caption="../workflow/report/pair_distances.rst",
            category="{study}",
            subcategory=MAIN,
            labels={"result": "pair distances, figure"},
        ),
        pdf=f"{RESULTS}/{{study}}/figures/pair_distances.pdf",
        csv=f"{RESULTS}/{{study}}/figures/pair_distances.csv",
    log:
        f"{RESULTS}/{{study}}/logs/figure/pair_distances.log",
    conda:
        ENVIRONMENT
    params:
        models=of_study("described_models"),
        texts=of_study("headings"),
        code=code_of("pair_distances.py"),
    script:
        "../workflow/scripts/pair_distances.py"
