"""The pages to open: one per study, self-contained, and an index of them."""

from importlib.metadata import version


rule thumbnails:
    """Small copies of the images of those pairs, for studies whose page may hold images."""
    input:
        view=rules.source_view.output[0],
        images=lambda wildcards: images_of(wildcards, "source"),
        pairs=files_of("pair_examples/{model}.json", model="models"),
        own=lambda wildcards: [ancient(path) for path in staged_images(wildcards)],
    output:
        f"{RESULTS}/{{study}}/thumbnails.parquet",
    log:
        f"{RESULTS}/{{study}}/logs/thumbnails.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(2000),
        runtime=minutes(30),
    params:
        **run_staged("thumbnails.py", own=staged_images),
        border=lambda wildcards: PLAN.border(study_of(wildcards), "source"),
        content=lambda wildcards: PLAN.edited_images(
            *study_of(wildcards).view("source")["datasets"]
        ),
        code=code_of("thumbnails.py"),
    script:
        "../workflow/scripts/{params.runs}"


rule chart_library:
    """The script that draws the charts of all pages: it takes a second to put together, once."""
    output:
        f"{RESULTS}/.chart_library.js",
    log:
        f"{RESULTS}/logs/chart_library.log",
    conda:
        ENVIRONMENT
    params:
        version=version("vl-convert-python"),
        code=code_of("chart_library.py"),
    script:
        "../workflow/scripts/chart_library.py"


rule page:
    """A study's page: the answer, the leaderboard, charts, a card for every model, and the pairs."""
    input:
        leaderboard=rules.leaderboard.output.parquet,
        scores=rules.collect.output.scores,
        outcomes=rules.collect.output.outcomes,
        correlations=rules.correlate.output.correlations,
        outranks=rules.correlate.output.outranks,
        pairs=files_of("pair_examples/{model}.json", model="models"),
        training=files_of("trained/{model}.json", model="trained"),
        analyses=files_of("analyses/{analysis}.txt", analysis="analyses"),
        baselines=baselines_of,
        robustness=robustness_of,
        regret=regret_of,
        thumbnails=file_if("shows_images", "thumbnails.parquet"),
        library=rules.chart_library.output[0],
    output:
        html=report(
            f"{RESULTS}/{{study}}/page.html",
            caption="../workflow/report/page.rst",
            category="{study}",
            subcategory=MAIN,
            labels={"result": "page"},
        ),
        summary=f"{RESULTS}/{{study}}/page.json",
    log:
        f"{RESULTS}/{{study}}/logs/page.log",
    conda:
        ENVIRONMENT
    params:
        facts=of_study("page_facts"),
        analyses=of_study("analyses"),
        trained=of_study("trained"),
        models=of_study("model_keys"),
        seed=PLAN.seed,
        templates=templates_digest(),
        code=code_of("page.py"),
    script:
        "../workflow/scripts/page.py"


rule index_page:
    """The index: the answer of each study, and the way to its page."""
    input:
        [f"{RESULTS}/{name}/page.json" for name in PLAN.studies],
    output:
        report(
            f"{RESULTS}/index.html",
            caption="../workflow/report/index.rst",
            category="Studies",
            labels={"result": "index"},
        ),
    log:
        f"{RESULTS}/logs/index_page.log",
    conda:
        ENVIRONMENT
    params:
        templates=templates_digest(),
        code=code_of("index_page.py"),
    script:
        "../workflow/scripts/index_page.py"
