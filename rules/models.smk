"""Models that a rule trains: from scratch, fine-tuned, or a linear head on a frozen backbone."""


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
    wildcard_constraints:
        model=one_of(PLAN.trained_by("train")),
    conda:
        ENVIRONMENT
    threads: PLAN.threads
    resources:
        mem_mb=memory(2000),
        runtime=minutes(120),
    params:
        load=of_model("load"),
        versions=of_model("versions"),
        task=of_study("task"),
        classes=of_study("classes"),
        seed=lambda wildcards: PLAN.seed_of(wildcards.model),
        code=code_of("train.py", of_model("module")),
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
        initial=lambda wildcards: [ancient(file) for file in of_model("initial_weights")(wildcards)],
    output:
        weights=f"{RESULTS}/{{study}}/trained/{{model}}.safetensors",
        record=f"{RESULTS}/{{study}}/trained/{{model}}.json",
    log:
        f"{RESULTS}/{{study}}/logs/finetune/{{model}}.log",
    wildcard_constraints:
        model=one_of(PLAN.trained_by("finetune")),
    conda:
        ENVIRONMENT
    threads: PLAN.threads
    resources:
        gpu=GPU,
        mem_mb=memory(8000),
        runtime=minutes(1440),
    params:
        **run_staged("finetune.py", initial=of_model("initial_weights")),
        load=of_model("load"),
        versions=of_model("versions"),
        task=of_study("task"),
        classes=of_study("classes"),
        seed=lambda wildcards: PLAN.seed_of(wildcards.model),
        files=digests_of(of_model("initial_weights")),
        # no output of the rule: those are deleted when a job fails, and this must outlive a kill
        checkpoint=lambda wildcards: (
            f"{RESULTS}/{wildcards.study}/checkpoints/{wildcards.model}.pt"
        ),
        code=code_of("finetune.py", of_model("module")),
    script:
        "../workflow/scripts/{params.runs}"


rule backbone_embeddings:
    """The embeddings of a frozen backbone on a view, once for all probes that share the backbone."""
    input:
        **pixels_of(model=backbone_of),
        view=f"{RESULTS}/{{study}}/views/{{view}}.parquet",
        weights=lambda wildcards: [
            ancient(file) for file in backbone_of(wildcards).backbone_weights
        ],
    output:
        f"{RESULTS}/{{study}}/backbone_embeddings/{{view}}/{{backbone}}.safetensors",
    log:
        f"{RESULTS}/{{study}}/logs/backbone_embeddings/{{view}}/{{backbone}}.log",
    wildcard_constraints:
        backbone=one_of(PLAN.backbones),
    conda:
        ENVIRONMENT
    threads: decoders_of(model=backbone_of)
    resources:
        gpu=GPU,
        mem_mb=memory(4000),
        runtime=minutes(720),
    params:
        **run_staged(
            "backbone_embeddings.py",
            weights=lambda wildcards: backbone_of(wildcards).backbone_weights,
        ),
        load=lambda wildcards: backbone_of(wildcards).backbone_load,
        versions=lambda wildcards: backbone_of(wildcards).versions,
        files=digests_of(lambda wildcards: backbone_of(wildcards).backbone_weights),
        pixels=decoding_of(model=backbone_of),
        batch=batch_size,
        numerics=PLAN.inference.numerics,
        code=code_of("backbone_embeddings.py", opener_of(model=backbone_of)),
    script:
        "../workflow/scripts/{params.runs}"


rule probe:
    """The linear head of a probe, its penalty chosen on the validation images."""
    input:
        view=f"{RESULTS}/{{study}}/views/train.parquet",
        embeddings=embeddings_of("train"),
        val_view=f"{RESULTS}/{{study}}/views/val.parquet",
        val_embeddings=embeddings_of("val"),
    output:
        weights=f"{RESULTS}/{{study}}/trained/{{model}}.safetensors",
        record=f"{RESULTS}/{{study}}/trained/{{model}}.json",
    log:
        f"{RESULTS}/{{study}}/logs/probe/{{model}}.log",
    wildcard_constraints:
        model=one_of(PLAN.trained_by("probe")),
    conda:
        ENVIRONMENT
    threads: PLAN.threads
    resources:
        mem_mb=memory(4000),
        runtime=minutes(120),
    params:
        backbone=of_model("backbone_key"),
        head=of_model("head"),
        task=of_study("task"),
        classes=of_study("classes"),
        code=code_of("probe.py"),
    script:
        "../workflow/scripts/probe.py"
