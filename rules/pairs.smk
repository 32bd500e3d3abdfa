"""Pairs of images, and the views that models are run on."""


rule pairs:
    """Semantic and random pairs of the source, in a fixed order of which a smaller N is a prefix."""
    input:
        index=source_index,
    output:
        f"{RESULTS}/{{study}}/pairs.parquet",
    log:
        f"{RESULTS}/{{study}}/logs/pairs.log",
    conda:
        ENVIRONMENT
    params:
        images=of_study("source_images"),
        pairs=of_study("pairs", "drawn"),
        task=of_study("task"),
        classes=of_study("classes"),
        seed=PLAN.seed,
        code=code_of("pairs.py"),
    script:
        "../workflow/scripts/pairs.py"


rule source_view:
    """The images of all pairs, and the calibration images."""
    input:
        index=source_index,
        pairs=rules.pairs.output[0],
    output:
        f"{RESULTS}/{{study}}/views/source.parquet",
    log:
        f"{RESULTS}/{{study}}/logs/source_view.log",
    conda:
        ENVIRONMENT
    params:
        images=of_study("source_images"),
        split=of_study("calibration", "split"),
        number=of_study("calibration", "n_images"),
        task=of_study("task"),
        classes=of_study("classes"),
        seed=PLAN.seed,
        code=code_of("source_view.py"),
    script:
        "../workflow/scripts/source_view.py"


rule view:
    """The images of a target, of the training split, or the labeled source images beyond the pool."""
    input:
        indexes=lambda wildcards: expand(
            f"{RESULTS}/datasets/{{dataset}}/index.parquet",
            dataset=study_of(wildcards).view(wildcards.view)["datasets"],
        ),
        without=lambda wildcards: (
            f"{RESULTS}/{wildcards.study}/views/source.parquet" if wildcards.view == "id" else []
        ),
    output:
        f"{RESULTS}/{{study}}/views/{{view}}.parquet",
    log:
        f"{RESULTS}/{{study}}/logs/view/{{view}}.log",
    conda:
        ENVIRONMENT
    params:
        images=at_view("view"),
        task=of_study("task"),
        classes=at_view("classes_of"),
        code=code_of("view.py"),
    script:
        "../workflow/scripts/view.py"


ruleorder: source_view > view
