"""What each model does on labeled images: at the source, and on every target."""


rule evaluate:
    """Macro-AUROC or top-1 accuracy, overall, per domain and per class."""
    input:
        views=evaluated("views/{view}.parquet"),
        logits=evaluated("{stage}/{view}/{model}.safetensors"),
        targets=labeled_views,
    output:
        f"{RESULTS}/{{study}}/evaluations/{{view}}/{{model}}.parquet",
    log:
        f"{RESULTS}/{{study}}/logs/evaluate/{{view}}/{{model}}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(2000),
        runtime=minutes(15),
    params:
        task=of_study("task"),
        classes=of_study("classes"),
        labeled=at_view("labeled_classes"),
        merge=at_view("evaluated_merges"),
        among=at_view("classes_among"),
        streamed=at_view("is_streamed"),
        subsets=at_view("class_subsets"),
        targets=at_view("labeled_targets"),
        split=at_view("evaluated_split"),
        minimum=of_study("statistics", "minimum"),
        code=code_of("evaluate.py"),
    script:
        "../workflow/scripts/evaluate.py"
