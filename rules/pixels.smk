"""The pixel cache: decoded and resized once per preprocessing, shared by every model that uses it."""


rule pixels:
    """A view's images as raw pixels; the record's digests, not the large file's age, tell of change."""
    input:
        view=f"{RESULTS}/{{study}}/views/{{view}}.parquet",
        images=lambda wildcards: [
            ancient(folder)
            for name in study_of(wildcards).view(wildcards.view)["datasets"]
            for folder in images_of(name)
        ],
    output:
        pixels=f"{RESULTS}/{{study}}/pixels/{{view}}/{{preprocessing}}.npy",
        record=f"{RESULTS}/{{study}}/pixels/{{view}}/{{preprocessing}}.json",
    log:
        f"{RESULTS}/{{study}}/logs/pixels/{{view}}/{{preprocessing}}.log",
    wildcard_constraints:
        preprocessing=one_of(PREPROCESSINGS),
    conda:
        ENVIRONMENT
    threads: 4
    resources:
        mem_mb=memory(4000),
        runtime=minutes(240),
    params:
        preprocessing=lambda wildcards: PREPROCESSINGS[wildcards.preprocessing],
        border=lambda wildcards: border_of(study_of(wildcards), wildcards.view),
        content=lambda wildcards: edited(
            fingerprint.of_images, study_of(wildcards).view(wildcards.view)["datasets"]
        ),
        code=code_of("pixels.py"),
    script:
        "../workflow/scripts/pixels.py"
