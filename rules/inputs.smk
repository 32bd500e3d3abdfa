"""The files that rules read, where a pattern does not say them."""

import hashlib

from stamp.config.registries import stress_changes
from stamp.config.zoo import weight_files
from stamp.core.code_digest import definition_digest

STORAGE = getattr(workflow.storage_settings, "default_storage_provider", None)


def downloads_of(wildcards):
    """The records of a data set's downloads, and of those of the data set that it relabels."""
    return [
        f"{RESULTS}/datasets/{key}/downloads/{name}.json"
        for key, name in PLAN.downloads(wildcards.dataset)
    ]


def source_index(wildcards):
    """The index of the source's data set."""
    return f"{RESULTS}/datasets/{study_of(wildcards).source.dataset}/index.parquet"


def pixels_of(view=None, model=model_of):
    """A model's pixel cache for a view: the record that tells of changes, the large file beside it.

    Where the study keeps none, what its images are decoded from.
    """

    def file(wildcards, ending):
        key = model(wildcards).preprocessing.key
        return f"{RESULTS}/{wildcards.study}/pixels/{view or wildcards.view}/{key}{ending}"

    def cached(wildcards):
        return keeps_pixels(wildcards, view or wildcards.view, model(wildcards))

    return {
        "pixels": lambda wildcards: ancient(file(wildcards, ".npy")) if cached(wildcards) else [],
        "record": lambda wildcards: file(wildcards, ".json") if cached(wildcards) else [],
        "images": lambda wildcards: (
            []
            if cached(wildcards) or model(wildcards).precomputed
            else images_of(wildcards, view or wildcards.view)
        ),
    }


def keeps_pixels(wildcards, view, model):
    """Whether a model reads a view's images from a pixel cache."""
    return not model.precomputed and study_of(wildcards).keeps_pixels(view, model.preprocessing)


def decoding_of(view=None, model=model_of):
    """A function from wildcards to how a model's images are had: the module that opens a view.

    Without a cache, all that decides their pixels is beside it.
    """

    def settings(wildcards):
        name, own = view or wildcards.view, model(wildcards)
        if own.precomputed:
            return {}
        if keeps_pixels(wildcards, name, own):
            return {"module": "stamp.images.pixel_cache"}
        return {
            "module": "stamp.images.decoded_images",
            "preprocessing": own.preprocessing.settings,
            "border": PLAN.border(study_of(wildcards), name),
            "content": PLAN.edited_images(*study_of(wildcards).view(name)["datasets"]),
        }

    return settings


def opener_of(view=None, model=model_of):
    """A function from wildcards to the module that opens a view, whose code is a job's own."""

    def module(wildcards):
        own = model(wildcards)
        return own.module if own.precomputed else decoding_of(view, model)(wildcards)["module"]

    return module


def decoders_of(view=None, model=model_of):
    """A function from wildcards to a job's threads: more where they decode beside a GPU."""

    def number(wildcards):
        decodes = opener_of(view, model)(wildcards) == "stamp.images.decoded_images"
        return max(PLAN.threads, DECODERS) if GPU and decodes else PLAN.threads

    return number


def images_of(wildcards, view=None):
    """What must be on disk for a view's images to be read: a folder, or the list of what was found.

    The list of a user's own images is not `ancient`: where it is made again because of a replaced
    image, Snakemake would not look at the params of a job that is joined to it by nothing else.
    """

    def found(name):
        dataset = PLAN.datasets[name]
        file = f"{RESULTS}/datasets/{name}/{'images' if dataset.made else 'images.json'}"
        return file if dataset.owned else ancient(file)

    return [found(name) for name in study_of(wildcards).view(view or wildcards.view)["datasets"]]


def staged(names, part):
    """The user's own tables or folders of images, where a storage must bring them to the jobs.

    Without one, jobs read them where they are: their content is in params, and a folder of the
    user's is no file that a module's prefix could be put before.
    """
    return [path for name in names for path in getattr(PLAN.datasets[name], part) if STORAGE]


def check_storage():
    """Refuse what a storage can't bring to the jobs, or not apart from something else."""
    folders = {path for name in PLAN.datasets for path in staged([name], "own_folders")}
    files = {
        os.path.normpath(file)
        for study in PLAN.studies.values()
        for model in study.models.values()
        for file in weight_files(model.load).values()
    }
    for path in sorted(files | folders):
        if above := [one for one in folders if Path(one) in Path(path).parents]:
            sys.exit(
                f"stamp: {path}: lies in {above[0]}, which a storage brings whole: move it out"
            )
    for study in PLAN.studies.values():
        if study.kinds or study.target_kinds:
            sys.exit(
                f"stamp: study '{study.name}': its metrics or analyses need extra outputs "
                f"({', '.join(sorted({*study.kinds, *study.target_kinds}))}), which are kept beside "
                "their manifests and not in a storage: leave those out, or run without a storage"
            )


if STORAGE:
    check_storage()


def staged_images(wildcards):
    """The folders of a view's images that a storage must bring to the job."""
    view = getattr(wildcards, "view", "source")
    return staged(study_of(wildcards).view(view)["datasets"], "own_folders")


def own_tables(wildcards):
    """What an index is made of, where a storage must bring it."""
    return staged([wildcards.dataset], "own_tables")


def own_folders(wildcards):
    """The folders of a data set's images, where a storage must bring them."""
    return staged([wildcards.dataset], "own_folders")


def copies_of(**files):
    """A function to the job's copies of the user's files, by the paths that the user gave them.

    Each argument is a function to the user's files, which are the last ones of the inputs in its
    name. For params: what is a function of ``input`` makes no job due.
    """

    def found(wildcards, input):
        copies = {}
        for names, paths in files.items():
            given = [input.get(name) or [] for name in names.split("_")]
            local = [one for each in given for one in ([each] if isinstance(each, str) else each)]
            named = paths(wildcards)
            copies |= zip(named, map(str, local[len(local) - len(named) :]), strict=True)
        return copies

    return found


def run_staged(script, **files):
    """The params that let a rule run ``script``, in a storage's job on copies of the user's files."""
    name = script if callable(script) else (lambda wildcards: script)
    return {
        "runs": lambda wildcards, input: "staged.py" if STORAGE else name(wildcards),
        "runs_staged": lambda wildcards, input: name(wildcards),
        "copies": copies_of(**files),
    }


def own_files(wildcards):
    """The files of a model that the user brings: weights, an ONNX file's data, or logits."""
    model = model_of(wildcards)
    if model.precomputed:
        return model.logits_files(wildcards.view) if "view" in wildcards.keys() else []
    own = [] if model.trainer or model.weights is None else [model.weights]
    return own + model.further_weights


def digests_of(files):
    """A function from wildcards to the SHA-256 of each of the user's files, for a rule's params.

    The files themselves are `ancient` inputs: their content counts, not their age.
    """
    return lambda wildcards: [planned(file) for file in files(wildcards)]


def weights_of(wildcards):
    """The weights that a rule trained or that the user brings; the hub's are no file of ours."""
    model = model_of(wildcards)
    if model.precomputed:
        return [ancient(file) for file in own_files(wildcards)]
    if model.trainer:
        return ancient(f"{RESULTS}/{wildcards.study}/trained/{wildcards.model}.safetensors")
    return ancient(model.weights) if model.weights else []


def trained_of(wildcards):
    """The record of the weights that a job of ours trained: its digest, not their age, tells of change."""
    trained = model_of(wildcards).trainer
    return f"{RESULTS}/{wildcards.study}/trained/{wildcards.model}.json" if trained else []


def further_weights_of(wildcards):
    """What a model needs beside its weights: the frozen backbone's, or the data of an ONNX file."""
    return [ancient(file) for file in model_of(wildcards).further_weights]


def backbone_of(wildcards):
    """One of the probes that share a backbone: only their heads differ."""
    return study_of(wildcards).backbones[wildcards.backbone]


def embeddings_of(view):
    """A function from wildcards to the embeddings of a probe's backbone on a view."""
    return lambda wildcards: (
        f"{RESULTS}/{wildcards.study}/backbone_embeddings/{view}/"
        f"{model_of(wildcards).backbone_key}.safetensors"
    )


def target_pixels_of(part):
    """A function from wildcards to a part of a model's pixels of the targets, see `pixels_of`."""

    def files(wildcards):
        found = [pixels_of(view)[part](wildcards) for view in study_of(wildcards).cached_targets]
        return [file for each in found for file in (each if isinstance(each, list) else [each])]

    return files


def target_decoding_of(wildcards):
    """How a model's images of each target are had, see `decoding_of`."""
    return {view: decoding_of(view)(wildcards) for view in study_of(wildcards).cached_targets}


def streamed_models(wildcards, output):
    """The models that share a streaming job, each with what decides its predictions.

    With `output` among the arguments, Snakemake does not compare what it gives with an earlier run.
    """
    found = {}
    for name, model in study_of(wildcards).streamed_together(wildcards.preprocessing).items():
        weights = [model.weights] if model.weights else []
        found[name] = {
            "load": model.load,
            "versions": model.versions,
            "weights": weights,
            "further": model.further_weights,
            "files": [planned(file) for file in [*weights, *model.further_weights]],
            "code": code_of("predictions.py", model.module)(wildcards),
        }
    return found


def streamed_settings(wildcards):
    """What those models share: the target's images, and the classes."""
    study, view = study_of(wildcards), wildcards.view
    first = next(iter(study.streamed_together(wildcards.preprocessing).values()))
    return {
        "preprocessing": first.uncropped,
        "border": PLAN.border(study, view),
        "content": PLAN.edited_images(*study.view(view)["datasets"]),
        "classes": study.classes,
        "among": study.classes_among(view),
    }


def stream_of(wildcards):
    """The record of the job that ran a model together with others, if one does."""
    model = model_of(wildcards)
    if not model.streams_with_others:
        return []
    key = model.streamed_preprocessing.key
    return f"{RESULTS}/{wildcards.study}/streams/{wildcards.view}/{key}.json"


def temperature_of(wildcards):
    """The calibration, where some outputs are taken at the fitted temperature."""
    wanted = study_of(wildcards).scales_extra_outputs and not model_of(wildcards).precomputed
    return f"{RESULTS}/{wildcards.study}/calibration/{wildcards.model}.json" if wanted else []


def evaluated(pattern):
    """A function from wildcards to files of the views that an evaluation reads."""

    def files(wildcards):
        study, view = study_of(wildcards), wildcards.view
        stage = "predictions" if study.is_streamed(view) else "logits"
        return expand(
            f"{RESULTS}/{study.name}/{pattern}",
            stage=stage,
            view=study.evaluated_views(view),
            model=wildcards.model,
        )

    return files


def labeled_views(wildcards):
    """The targets' views whose labels say which classes the source is evaluated on too."""
    names = study_of(wildcards).labeled_targets(wildcards.view)
    return expand(f"{RESULTS}/{wildcards.study}/views/{{view}}.parquet", view=names)


def needed(kind, files):
    """A function from wildcards to files of a kind, for the analyses that read it."""
    return lambda wildcards: files(wildcards) if kind in ANALYSES[wildcards.analysis].inputs else []


def metrics_files(wildcards):
    """The metrics of single models, and those of all models together."""
    single = files_of("metrics/{model}.parquet", model="models")
    together = files_if("agreement_on_the_line", "statistics/agreement_on_the_line.parquet")
    trained = files_if("projection_norm", "projection_norm/{model}.parquet", model="models")
    return single(wildcards) + trained(wildcards) + together(wildcards)


def profiles_of(wildcards):
    """The profiles that an analysis reads, one per model."""
    files = files_of(
        f"profiles/{ANALYSES[wildcards.analysis].profile}/{{model}}.parquet", model="models"
    )
    return files(wildcards)


def profile_outputs(wildcards):
    """The extra outputs that a profile needs, or the stress tests."""
    asked = ANALYSES[wildcards.profile]
    folder = "stress_tests" if asked.stress_tests else "extra_outputs"
    file = f"{RESULTS}/{wildcards.study}/{folder}/{wildcards.model}.json"
    return file if asked.stress_tests or asked.extra_outputs else []


def codes_of_changes(wildcards):
    """The changes of a study's stress tests by name, each with a digest of its own code."""
    names = study_of(wildcards).stress_changes
    return {name: definition_digest(stress_changes.MODULE, name) for name in names}


def baselines_of(wildcards):
    """The table of all predictors, where the study asks for it."""
    asked = "baselines" in study_of(wildcards).analyses
    return f"{RESULTS}/{wildcards.study}/analyses/baselines.csv" if asked else []


def robustness_of(wildcards):
    """What stress tests say of each model, where the study has any."""
    asked = study_of(wildcards).stress_changes
    return f"{RESULTS}/{wildcards.study}/analyses/robustness_models.csv" if asked else []


def regret_of(wildcards):
    """The table of what picks by each predictor lose, where the study asks for it."""
    asked = "regret" in study_of(wildcards).analyses
    return f"{RESULTS}/{wildcards.study}/analyses/regret.csv" if asked else []


def templates_digest():
    """A digest of the pages' templates, styles and script: a changed word reruns the pages alone."""
    state = hashlib.sha256()
    for path in sorted((shipped.LIBRARY / "report" / "page" / "templates").iterdir()):
        state.update(path.name.encode() + path.read_bytes())
    return state.hexdigest()[:16]


def results_of(study):
    """What a finished study leaves behind."""
    figures = [name for name in FIGURES if study.targets or name != "targets"]
    figures += ["pair_distances", *(["training"] if study.finetuned else [])]
    figures += [name for name in study.analyses if name in DRAWN]
    tables = ["correlations", "main", "ranks", "outranks"]
    folder = f"{RESULTS}/{study.name}"
    return [
        f"{folder}/page.html",
        *expand(f"{folder}/leaderboard.{{kind}}", kind=["csv", "parquet"]),
        *expand(f"{folder}/statistics/{{table}}.csv", table=tables),
        *expand(f"{folder}/figures/{{figure}}.{{kind}}", figure=figures, kind=["png", "pdf"]),
        *expand(
            f"{folder}/analyses/{{analysis}}{{ending}}",
            analysis=study.analyses,
            ending=[".csv", "_models.csv", ".txt"],
        ),
    ]
