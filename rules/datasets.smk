"""Data sets: made or found, then indexed."""


rule make_dataset:
    """Data sets that come from code or from inside a package."""
    output:
        index=f"{RESULTS}/datasets/{{dataset}}/index.parquet",
        images=directory(f"{RESULTS}/datasets/{{dataset}}/images"),
    log:
        f"{RESULTS}/datasets/{{dataset}}/make_dataset.log",
    conda:
        ENVIRONMENT
    params:
        adapter=lambda wildcards: PLAN.datasets[wildcards.dataset].adapter,
        options=lambda wildcards: PLAN.datasets[wildcards.dataset].options,
        seed=PLAN.seed,
        code=lambda wildcards: code_of(
            "make_dataset.py", f"stamp.datasets.{PLAN.datasets[wildcards.dataset].adapter}"
        ),
    script:
        "../workflow/scripts/make_dataset.py"
