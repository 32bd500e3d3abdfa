"""Models that a rule trains: from scratch, fine-tuned, or a linear head on a frozen backbone."""

from stamp.config.model_sources import backbone_key

# A backbone by its study and key: any of the probes that share it, since only the head differs.
BACKBONES = {
    (study.name, backbone_key(model.load)): model
    for study in PLAN.studies.values()
    for model in study.models.values()
    if model.trainer == "probe"
}


rule train:
    """A network trained on the source's train split, by the recipe in its zoo entry."""
    input:
        **pixels_of("train"),
        view=f"{RESULTS}/{{study}}/views/train.parquet",
    output:
        weights=f"{RESULTS}/{{study}}/trained/{{model}}.safetensors",
        record=f"{RESULTS}/{{study}}/trained/{{model}}.json",
    log:
        f"{RESULTS}/{{study}}/logs/train/{{model}}.log",
    benchmark:
        f"{RESULTS}/{{study}}/benchmarks/train/{{model}}.tsv"
    wildcard_constraints:
        model=trained_by("train"),
    conda:
        ENVIRONMENT
    threads: PLAN.threads
    resources:
        mem_mb=memory(2000),
        runtime=minutes(120),
    params:
        load=lambda wildcards: model_of(wildcards).load,
        versions=lambda wildcards: versions(model_of(wildcards).load["source"]),
        task=of_study("task"),
        classes=of_study("classes"),
        seed=seed_of,
        code=lambda wildcards: code_of("train.py", model_of(wildcards).module),
    script:
        "../workflow/scripts/train.py"


rule finetune:
    """A published network fine-tuned in two stages; a killed job goes on after its last epoch."""
    input:
        **pixels_of("train"),
        view=f"{RESULTS}/{{study}}/views/train.parquet",
        val_pixels=pixels_of("val")["pixels"],
        val_record=pixels_of("val")["record"],
        val_view=f"{RESULTS}/{{study}}/views/val.parquet",
        initial=lambda wildcards: model_of(wildcards).load["initial"].get("file", []),
    output:
        weights=f"{RESULTS}/{{study}}/trained/{{model}}.safetensors",
        record=f"{RESULTS}/{{study}}/trained/{{model}}.json",
    log:
        f"{RESULTS}/{{study}}/logs/finetune/{{model}}.log",
    benchmark:
        f"{RESULTS}/{{study}}/benchmarks/finetune/{{model}}.tsv"
    wildcard_constraints:
        model=trained_by("finetune"),
    conda:
        ENVIRONMENT
    threads: PLAN.threads
    resources:
        gpu=1 if DEVICE == "cuda" else 0,
        mem_mb=memory(8000),
        runtime=minutes(1440),
    params:
        load=lambda wildcards: model_of(wildcards).load,
        versions=lambda wildcards: versions(model_of(wildcards).load["source"]),
        task=of_study("task"),
        classes=of_study("classes"),
        seed=seed_of,
        # no output of the rule: those are deleted when a job fails, and this must outlive a kill
        checkpoint=lambda wildcards: (
            f"{RESULTS}/{wildcards.study}/checkpoints/{wildcards.model}.pt"
        ),
        code=lambda wildcards: code_of("finetune.py", model_of(wildcards).module),
    script:
        "../workflow/scripts/finetune.py"


rule backbone_embeddings:
    """The embeddings of a frozen backbone on a view, once for all probes that share the backbone."""
    input:
        pixels=lambda wildcards: ancient(
            f"{RESULTS}/{wildcards.study}/pixels/{wildcards.view}/"
            f"{BACKBONES[wildcards.study, wildcards.backbone].preprocessing.key}.npy"
        ),
        record=lambda wildcards: (
            f"{RESULTS}/{wildcards.study}/pixels/{wildcards.view}/"
            f"{BACKBONES[wildcards.study, wildcards.backbone].preprocessing.key}.json"
        ),
        view=f"{RESULTS}/{{study}}/views/{{view}}.parquet",
        weights=lambda wildcards: (
            BACKBONES[wildcards.study, wildcards.backbone].load["backbone"].get("file", [])
        ),
    output:
        f"{RESULTS}/{{study}}/backbone_embeddings/{{view}}/{{backbone}}.safetensors",
    log:
        f"{RESULTS}/{{study}}/logs/backbone_embeddings/{{view}}/{{backbone}}.log",
    benchmark:
        f"{RESULTS}/{{study}}/benchmarks/backbone_embeddings/{{view}}/{{backbone}}.tsv"
    wildcard_constraints:
        backbone=one_of({key for _, key in BACKBONES}),
    conda:
        ENVIRONMENT
    threads: PLAN.threads
    resources:
        gpu=1 if DEVICE == "cuda" else 0,
        mem_mb=memory(4000),
        runtime=minutes(720),
    params:
        load=lambda wildcards: {
            key: BACKBONES[wildcards.study, wildcards.backbone].load[key]
            for key in ("backbone", "preprocessing")
        },
        versions=lambda wildcards: versions(
            "probe", BACKBONES[wildcards.study, wildcards.backbone].load
        ),
        code=code_of("backbone_embeddings.py"),
    script:
        "../workflow/scripts/backbone_embeddings.py"


rule probe:
    """The linear head of a probe, its penalty chosen on the validation images."""
    input:
        view=f"{RESULTS}/{{study}}/views/train.parquet",
        embeddings=lambda wildcards: (
            f"{RESULTS}/{wildcards.study}/backbone_embeddings/train/"
            f"{backbone_key(model_of(wildcards).load)}.safetensors"
        ),
        val_view=f"{RESULTS}/{{study}}/views/val.parquet",
        val_embeddings=lambda wildcards: (
            f"{RESULTS}/{wildcards.study}/backbone_embeddings/val/"
            f"{backbone_key(model_of(wildcards).load)}.safetensors"
        ),
    output:
        weights=f"{RESULTS}/{{study}}/trained/{{model}}.safetensors",
        record=f"{RESULTS}/{{study}}/trained/{{model}}.json",
    log:
        f"{RESULTS}/{{study}}/logs/probe/{{model}}.log",
    benchmark:
        f"{RESULTS}/{{study}}/benchmarks/probe/{{model}}.tsv"
    wildcard_constraints:
        model=trained_by("probe"),
    conda:
        ENVIRONMENT
    threads: PLAN.threads
    resources:
        mem_mb=memory(4000),
        runtime=minutes(120),
    params:
        backbone=lambda wildcards: backbone_key(model_of(wildcards).load),
        head=lambda wildcards: {
            key: value
            for key, value in model_of(wildcards).load.items()
            if key in ("penalty", "standardise")
        },
        task=of_study("task"),
        classes=of_study("classes"),
        code=code_of("probe.py"),
    script:
        "../workflow/scripts/probe.py"
