"""The paper's printed numbers, recomputed: `snakemake --cores 2 audit` needs no images."""

from stamp.config.labels.label_maps import digest as labels_digest
from stamp.paper.audit_inputs import finished_studies, training_list

PAPER = sorted(str(file) for file in (ROOT / "resources" / "paper").glob("*.csv"))
NIH = PLAN.datasets["nih"].root if "nih" in PLAN.datasets else None
# No inputs of a job: an audit never runs a study.
FINISHED = finished_studies(RESULTS)


rule audit:
    """Everything that the audit makes."""
    input:
        f"{RESULTS}/audit/claims.csv",
        f"{RESULTS}/audit/reproduction.md",
        [f"{RESULTS}/audit/study.csv", f"{RESULTS}/audit/predictors.md"] if FINISHED else [],


rule audit_claims:
    """Every printed claim beside its recomputation, as a table and as a page."""
    input:
        tables=PAPER,
        lists=training_list(NIH),
    output:
        claims=report(
            f"{RESULTS}/audit/claims.csv",
            caption="../workflow/report/audit.rst",
            category="audit",
            labels={"result": "claims, table"},
        ),
        page=f"{RESULTS}/audit/reproduction.md",
    log:
        f"{RESULTS}/audit/logs/claims.log",
    conda:
        ENVIRONMENT
    params:
        lists=lambda wildcards, input: os.path.dirname(input.lists[0]) if input.lists else "",
        labels={name: labels_digest(name) for name in ("chexpert", "mimic_cxr", "nih", "vindr")},
        code=code_of("audit_claims.py"),
    script:
        "../workflow/scripts/audit_claims.py"


rule audit_study:
    """rho, partial rho, n, STAMP and predictors of finished studies beside the paper's."""
    input:
        tables=PAPER,
    output:
        csv=report(
            f"{RESULTS}/audit/study.csv",
            caption="../workflow/report/audit.rst",
            category="audit",
            labels={"result": "studies beside the paper, table"},
        ),
        predictors=f"{RESULTS}/audit/predictors.md",
    log:
        f"{RESULTS}/audit/logs/study.log",
    conda:
        ENVIRONMENT
    params:
        results=lambda wildcards, output: os.path.dirname(os.path.dirname(output[0])),
        studies=FINISHED,
        code=code_of("audit_study.py"),
    script:
        "../workflow/scripts/audit_study.py"
