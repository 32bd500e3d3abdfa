"""Data sets: made, or downloaded and found, then indexed."""

MADE = [key for key, dataset in PLAN.datasets.items() if dataset.made]
FOUND = [key for key in PLAN.datasets if key not in MADE]


rule make_dataset:
    """Data sets that come from code or from inside a package."""
    output:
        index=f"{RESULTS}/datasets/{{dataset}}/index.parquet",
        images=directory(f"{RESULTS}/datasets/{{dataset}}/images"),
    log:
        f"{RESULTS}/datasets/{{dataset}}/make_dataset.log",
    wildcard_constraints:
        dataset=one_of(MADE),
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(4000),
        runtime=minutes(60),
    params:
        adapter=of_dataset("adapter"),
        options=of_dataset("options"),
        seed=PLAN.seed,
        code=code_of("make_dataset.py", of_dataset("module")),
    script:
        "../workflow/scripts/make_dataset.py"


rule download:
    """One file of a data set, verified, and unpacked where it is an archive."""
    output:
        f"{RESULTS}/datasets/{{dataset}}/downloads/{{file}}.json",
    log:
        f"{RESULTS}/datasets/{{dataset}}/downloads/{{file}}.log",
    wildcard_constraints:
        file=one_of(name for dataset in PLAN.datasets.values() for name in dataset.files),
    conda:
        ENVIRONMENT
    resources:
        network=1,
    params:
        remote=lambda wildcards: PLAN.datasets[wildcards.dataset].files[wildcards.file],
        access=of_dataset("access"),
        root=of_dataset("root"),
    script:
        "../workflow/scripts/download.py"


rule find_dataset:
    """The index of a data set that lies in its folder, from its metadata alone."""
    input:
        downloads_of,
        own=lambda wildcards: [ancient(path) for path in own_tables(wildcards)],
    output:
        f"{RESULTS}/datasets/{{dataset}}/index.parquet",
    log:
        f"{RESULTS}/datasets/{{dataset}}/find_dataset.log",
    wildcard_constraints:
        dataset=one_of(FOUND),
    conda:
        ENVIRONMENT
    params:
        adapter=of_dataset("adapter"),
        options=of_dataset("options"),
        root=of_dataset("root"),
        labels=of_dataset("label_map"),
        content=of_dataset("edited_table"),
        seed=PLAN.seed,
        code=code_of("find_dataset.py", of_dataset("module")),
        copies=copies_of(own=own_tables),
    script:
        "../workflow/scripts/find_dataset.py"


rule find_images:
    """Every image of an index is there; where the data set allows it, missing ones are fetched."""
    input:
        rules.find_dataset.output[0],
        own=lambda wildcards: [ancient(path) for path in own_folders(wildcards)],
    output:
        f"{RESULTS}/datasets/{{dataset}}/images.json",
    log:
        f"{RESULTS}/datasets/{{dataset}}/find_images.log",
    wildcard_constraints:
        dataset=one_of(FOUND),
    conda:
        ENVIRONMENT
    resources:
        network=1,
    params:
        adapter=of_dataset("adapter"),
        access=of_dataset("access"),
        root=of_dataset("root"),
        url=of_dataset("fetched_from"),
        content=lambda wildcards: PLAN.edited_images(wildcards.dataset),
        # no output of the rule: it must outlive the images that it is compared with
        contents=lambda wildcards: str(PLAN.image_record(wildcards.dataset)),
        copies=copies_of(own=own_folders),
    script:
        "../workflow/scripts/find_images.py"
