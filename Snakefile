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
include: "rules/stress_tests.smk"
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
include: "rules/page.smk"
include: "rules/audit.smk"


localrules:
    pairs,
    source_view,
    view,
    collect,
    timings,
    thumbnails,
    main_table,
    leaderboard,
    figure,
    training_figure,
    pair_distances,
    analysis_figure,
    chart_library,
    page,
    index_page,
    download,
    find_dataset,
    find_images,
    audit,
    audit_claims,
    audit_study,


rule all:
    default_target: True
    input:
        f"{RESULTS}/index.html",
        [results_of(study) for study in PLAN.studies.values()],


onstart:
    from stamp.core.live_display import show_what_runs
    from stamp.core.snakemake_speed import start_without_limit
    from stamp.core.warm_start import scripts as warm_scripts
    from stamp.data.planned_caches import room_for_caches

    try:
        if room := room_for_caches(PLAN, studies_due(workflow.dag.needrun_jobs(), "pixels")):
            print(f"stamp: {room}")
    except UserError as mistake:
        sys.exit(f"stamp: {mistake}")
    show_what_runs(workflow.logger_manager.plugin_handlers)
    start_without_limit(workflow)
    if PLAN.warm_start:
        warm_scripts.use(workflow, DEVICE)


onsuccess:
    from stamp.report.page.last_lines import last_lines

    keep_records(Path(RESULTS))
    print(last_lines(RESULTS, PLAN.studies))


onerror:
    from stamp.report.page.last_lines import lines_of_failure

    keep_records(Path(RESULTS))
    if INTERRUPTION.stopped(workflow.scheduler):
        INTERRUPTION.say()
    else:
        print(lines_of_failure(RESULTS, PLAN.studies, workflow.scheduler.failed))
