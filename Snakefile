"""STAMP: from data to figures, one branch per model."""

from snakemake.utils import min_version

min_version("9.0")


configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


include: "rules/common.smk"
include: "rules/inputs.smk"
include: "rules/datasets.smk"
include: "rules/pairs.smk"
include: "rules/pixels.smk"
include: "rules/models.smk"
include: "rules/logits.smk"
include: "rules/extra_outputs.smk"
include: "rules/predictions.smk"
include: "rules/calibrate.smk"
include: "rules/score.smk"
include: "rules/metrics.smk"
include: "rules/evaluate.smk"
include: "rules/correlate.smk"
include: "rules/leaderboard.smk"
include: "rules/profiles.smk"
include: "rules/analyses.smk"
include: "rules/figures.smk"
include: "rules/audit.smk"


localrules:
    pairs,
    source_view,
    view,
    collect,
    timings,
    main_table,
    leaderboard,
    figure,
    training_figure,
    analysis_figure,
    download,
    find_dataset,
    find_images,
    audit,
    audit_claims,
    audit_study,


rule all:
    default_target: True
    input:
        [results_of(study) for study in PLAN.studies.values()],


onsuccess:
    keep_records(Path(PLAN.results))
    for study in PLAN.studies.values():
        if not Path(PLAN.results, study.name, "leaderboard.csv").is_file():
            continue
        print(f"{study.title}: {PLAN.results}/{study.name}/leaderboard.csv")
        print(f"    statistics and figures: {PLAN.results}/{study.name}/statistics/, figures/")


onerror:
    keep_records(Path(PLAN.results))
    print(f"A job failed: its own line stands above and in {PLAN.results}/<study>/logs/.")
