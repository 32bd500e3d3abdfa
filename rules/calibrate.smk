"""Temperature calibration."""


rule calibrate:
    """The temperature that fits the calibration images best, and what each exclusion rule says."""
    input:
        view=rules.source_view.output[0],
        logits=f"{RESULTS}/{{study}}/logits/source/{{model}}.safetensors",
    output:
        f"{RESULTS}/{{study}}/calibration/{{model}}.json",
    log:
        f"{RESULTS}/{{study}}/logs/calibrate/{{model}}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(2000),
        runtime=minutes(15),
    params:
        task=of_study("task"),
        classes=of_study("classes"),
        rules=of_study("calibration", "thresholds"),
        minimum=of_study("statistics", "minimum"),
        code=code_of("calibrate.py"),
    script:
        "../workflow/scripts/calibrate.py"
