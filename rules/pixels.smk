"""The pixel cache: decoded and resized once per preprocessing, shared by every model that uses it."""


def preprocessings():
    """Every preprocessing of the configured models, by its key."""
    models = [model for study in PLAN.studies.values() for model in study.models.values()]
    return {model.pixels.key: model.pixels.settings for model in models}


PREPROCESSINGS = preprocessings()


def pixels_of(view):
    """A model's pixel cache for a view: the record that tells of changes, the large file beside it."""

    def files(wildcards):
        name = view or wildcards.view
        key = model_of(wildcards).pixels.key
        return f"{RESULTS}/{wildcards.study}/pixels/{name}/{key}"

    return {
        "pixels": lambda wildcards: ancient(f"{files(wildcards)}.npy"),
        "record": lambda wildcards: f"{files(wildcards)}.json",
    }


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
    wildcard_constraints:
        preprocessing=one_of(PREPROCESSINGS),
    log:
        f"{RESULTS}/{{study}}/logs/pixels/{{view}}/{{preprocessing}}.log",
    params:
        preprocessing=lambda wildcards: PREPROCESSINGS[wildcards.preprocessing],
        code=code_of("pixels.py"),
    threads: 4
    script:
        "../workflow/scripts/pixels.py"
