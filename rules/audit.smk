"""The paper's printed numbers, recomputed: `snakemake --cores 2 audit` needs no images."""

import hashlib

PAPER = sorted(str(file) for file in (ROOT / "resources" / "paper").glob("*.csv"))


def nih_lists():
    """NIH's official list of training images, where the user's folder has it."""
    root = PLAN.datasets["nih"].root if "nih" in PLAN.datasets else None
    file = Path(root) / "train_val_list.txt" if root else None
    return [str(file)] if file and file.is_file() else []


def finished_studies():
    """The paper's studies whose results are there, each with a digest of what is compared.

    Their files are no inputs: an audit never runs a study.
    """
    found = {}
    for study in ("medical", "medical_paper", "natural"):
        files = [
            Path(RESULTS) / study / name for name in ("statistics/main.csv", "leaderboard.csv")
        ]
        if all(file.is_file() for file in files):
            text = b"".join(file.read_bytes() for file in files)
            found[study] = hashlib.sha256(text).hexdigest()[:16]
    return found


FINISHED = finished_studies()


rule audit:
    """Everything that the audit makes."""
    input:
        f"{RESULTS}/audit/claims.csv",
        f"{RESULTS}/audit/reproduction.md",
        [f"{RESULTS}/audit/study.csv"] if FINISHED else [],


rule audit_claims:
    """Every printed claim beside its recomputation, as a table and as a page."""
    input:
        tables=PAPER,
        lists=nih_lists(),
    output:
        claims=report(
            f"{RESULTS}/audit/claims.csv",
            caption="../workflow/report/audit.rst",
            category="audit",
            labels={"table": "claims"},
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
    """rho, partial rho, n and STAMP of finished studies beside the paper's."""
    input:
        tables=PAPER,
    output:
        report(
            f"{RESULTS}/audit/study.csv",
            caption="../workflow/report/audit.rst",
            category="audit",
            labels={"table": "studies beside the paper"},
        ),
    log:
        f"{RESULTS}/audit/logs/study.log",
    conda:
        ENVIRONMENT
    params:
        results=RESULTS,
        studies=FINISHED,
        code=code_of("audit_study.py"),
    script:
        "../workflow/scripts/audit_study.py"
