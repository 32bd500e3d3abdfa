"""The pixel cache: decoded and resized once per preprocessing, shared by every model that uses it."""


rule pixels:
    """A view's images as raw pixels; the record's digests, not the large file's age, tell of change."""
    input:
        view=f"{RESULTS}/{{study}}/views/{{view}}.parquet",
        images=images_of,
        own=lambda wildcards: [ancient(path) for path in staged_images(wildcards)],
    output:
        pixels=f"{RESULTS}/{{study}}/pixels/{{view}}/{{preprocessing}}.npy",
        record=f"{RESULTS}/{{study}}/pixels/{{view}}/{{preprocessing}}.json",
    log:
        f"{RESULTS}/{{study}}/logs/pixels/{{view}}/{{preprocessing}}.log",
    wildcard_constraints:
        preprocessing=one_of(PLAN.preprocessings),
    conda:
        ENVIRONMENT
    threads: 4
    resources:
        mem_mb=memory(4000),
        runtime=minutes(240),
    params:
        **run_staged("pixels.py", own=staged_images),
        preprocessing=lambda wildcards: PLAN.preprocessings[wildcards.preprocessing],
        border=lambda wildcards: PLAN.border(study_of(wildcards), wildcards.view),
        content=lambda wildcards: PLAN.edited_images(
            *study_of(wildcards).view(wildcards.view)["datasets"]
        ),
        code=code_of("pixels.py"),
    script:
        "../workflow/scripts/{params.runs}"
