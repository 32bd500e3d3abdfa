"""The configuration, checked, and the few functions that the stages share."""

import os
import re
import sys
from pathlib import Path

ROOT = Path(workflow.basedir)
SCRIPTS = ROOT / "workflow" / "scripts"
if str(SCRIPTS) not in sys.path:
    sys.path.insert(0, str(SCRIPTS))

from stamp.config import fingerprints as fingerprint
from stamp.config.analyses import ANALYSES
from stamp.config.plan import described
from stamp.config.plan import load as load_config
from stamp.config.plan import read_classes, weight_files
from stamp.core.device import choose as choose_device
from stamp.core.code_digest import code_digest as digest_code
from stamp.core.errors import UserError
from stamp.config.label_maps import digest as labels_digest
from stamp.config.model_sources import versions
from stamp.config.precomputed import file_of, ids_file
from stamp.core.environment import prepare as prepare_jobs

try:
    PLAN = load_config(config)
    DEVICE = choose_device(PLAN.device)
except UserError as mistake:
    sys.exit(f"stamp: {mistake}")

prepare_jobs(SCRIPTS)

RESULTS = PLAN.results
ENVIRONMENT = str(ROOT / "envs" / "stamp.yaml")
FIGURES = ["targets", "ranks", "forest"]
# How the report groups what a study leaves. Each result there has one label: of two that come in
# equal halves Snakemake 9 makes a switch, and shows no page where a half has no counterpart.
MAIN, OTHERS = "Main results", "Other analyses"


def one_of(names):
    """A wildcard constraint that lets exactly these names through."""
    return "|".join(re.escape(name) for name in sorted(names)) or "none^"


wildcard_constraints:
    study=one_of(PLAN.studies),
    dataset=one_of(PLAN.datasets),
    model=one_of(key for study in PLAN.studies.values() for key in study.models),
    target=one_of(key for study in PLAN.studies.values() for key in study.targets),
    view=one_of(
        {"source", "id", "train", "val"}
        | {key for study in PLAN.studies.values() for key in study.targets}
    ),
    figure=one_of(FIGURES),


def code_of(script, *modules):
    """The digest of a script and the library modules it imports, for a rule's params."""
    return digest_code(SCRIPTS / script, *modules)


def grows(resource, first):
    """A job's resource: ``first``, and as much again on each retry, up to the configured limit."""
    most = PLAN.limits.get(resource, float("inf"))
    return lambda wildcards, attempt: min(first * attempt, most)


def memory(megabytes):
    """The memory that a job asks a cluster for, for its ``mem_mb``."""
    return grows("mem_mb", megabytes)


def minutes(number):
    """The time that a job asks a cluster for, for its ``runtime``."""
    return grows("runtime", number)


def study_of(wildcards):
    return PLAN.studies[wildcards.study]


def model_of(wildcards):
    """The model of a job; one that the study does not have is not made by any rule."""
    models = study_of(wildcards).models
    if wildcards.model not in models:
        raise ValueError(f"study '{wildcards.study}' has no model '{wildcards.model}'")
    return models[wildcards.model]


def of_study(*path):
    """A function from wildcards to a part of the study, by attribute and keys."""

    def part(wildcards):
        value = getattr(study_of(wildcards), path[0])
        for key in path[1:]:
            value = value[key]
        return value

    return part


def of_dataset(part):
    """A function from wildcards to a part of the data set."""
    return lambda wildcards: getattr(PLAN.datasets[wildcards.dataset], part)


def adapter_code(script):
    """A function from wildcards to the digest of a script and of the data set's adapter."""
    return lambda wildcards: code_of(
        script, f"stamp.data.adapters.{PLAN.datasets[wildcards.dataset].adapter}"
    )


def edited(digest, names):
    """Digests of what a user may edit in some data sets; None where nothing is the user's own."""
    sets = [PLAN.datasets[name] for name in names]
    found = [digest(each.adapter, each.options, each.root) for each in sets]
    return found if any(found) else None


def downloads_of(wildcards):
    """The records of a data set's downloads, and of those of the data set that it relabels."""
    dataset = PLAN.datasets[wildcards.dataset]
    origin = [PLAN.datasets[dataset.relabels]] if dataset.relabels else []
    return [
        f"{RESULTS}/datasets/{each.key}/downloads/{name}.json"
        for each in [dataset, *origin]
        if each.download
        for name in each.files
    ]


def index_of(name):
    """The index file of a data set."""
    return f"{RESULTS}/datasets/{name}/index.parquet"


def images_of(name):
    """What must be on disk for a data set's images to be read: the folder, or what was found."""
    kind = "images" if PLAN.datasets[name].made else "images.json"
    return [f"{RESULTS}/datasets/{name}/{kind}"]


def per_model(pattern):
    """One file a model of the study."""
    return lambda wildcards: expand(
        pattern, study=wildcards.study, model=list(study_of(wildcards).models)
    )


def all_described(study):
    """What figures and tables say of each model; nothing that a number depends on."""
    return {key: described(model) for key, model in study.models.items()}


def texts_of(study):
    """The words around a study's figures and tables."""
    targets = study.targets.items()
    return {
        "title": study.title,
        "notice": study.notice,
        "task": study.task,
        "level": study.statistics["level"],
        "targets": {key: target["title"] for key, target in targets},
        "outcomes": {key: target["outcomes"] for key, target in targets},
        "matched": [key for key, target in targets if target["score"] == "matched"],
        "relabelled": [key for key, target in targets if target["relabelled"]],
    }


def trains(study, rule):
    """The models of a study that a rule trains."""
    return [key for key, model in study.models.items() if model.trainer == rule]


def trained_by(rule):
    """The models that a rule trains, as a wildcard constraint."""
    return one_of({key for study in PLAN.studies.values() for key in trains(study, rule)})


def is_precomputed(wildcards):
    """Whether a model is a file of outputs, so that nothing can be run."""
    return model_of(wildcards).precomputed


def seed_of(wildcards):
    """The seed of one model: the study's seed and the model's own name."""
    from zlib import crc32

    return PLAN.seed * 1_000_003 + crc32(wildcards.model.encode())


def ends(study):
    """What a finished study leaves behind."""
    folder = f"{RESULTS}/{study.name}"
    return [
        f"{folder}/leaderboard.csv",
        f"{folder}/leaderboard.parquet",
        f"{folder}/statistics/correlations.csv",
        f"{folder}/statistics/main.csv",
        f"{folder}/statistics/ranks.csv",
        f"{folder}/statistics/outranks.csv",
        *expand(
            f"{folder}/figures/{{figure}}.{{ending}}",
            figure=[
                *(name for name in FIGURES if study.targets or name != "targets"),
                *(["training"] if trains(study, "finetune") else []),
            ],
            ending=["png", "pdf"],
        ),
        *analysis_ends(study),
    ]


def preprocessings():
    """Every preprocessing of the configured models, by its key."""
    models = [model for study in PLAN.studies.values() for model in study.models.values()]
    return {model.preprocessing.key: model.preprocessing.settings for model in models}


PREPROCESSINGS = preprocessings()


def pixel_file(wildcards, view, ending):
    """A file of a model's pixel cache for a view; a model of given outputs has none."""
    model = model_of(wildcards)
    if model.precomputed:
        return []
    file = f"{RESULTS}/{wildcards.study}/pixels/{view}/{model.preprocessing.key}{ending}"
    return ancient(file) if ending == ".npy" else file


def pixels_of(view):
    """A model's pixel cache for a view: the record that tells of changes, the large file beside it."""
    return {
        "pixels": lambda wildcards: pixel_file(wildcards, view or wildcards.view, ".npy"),
        "record": lambda wildcards: pixel_file(wildcards, view or wildcards.view, ".json"),
    }


def pixels_of_targets(ending):
    """A function from wildcards to a model's pixel caches of all targets that have pictures."""
    return lambda wildcards: [
        pixel_file(wildcards, name, ending)
        for name in cached_targets(study_of(wildcards))
        if not is_precomputed(wildcards)
    ]


def weights_of(wildcards):
    """The weights that a rule trained or that the user brings; the hub's are no file of ours."""
    model = model_of(wildcards)
    if model.trainer:
        return f"{RESULTS}/{wildcards.study}/trained/{wildcards.model}.safetensors"
    files = weight_files(model.load)
    if model.precomputed:
        return precomputed_files(model, wildcards.view)
    return files.get("file") or files.get("checkpoint.file") or []


def more_weights_of(wildcards):
    """What a model needs beside its weights: the frozen backbone's, or the data of an ONNX file."""
    files = weight_files(model_of(wildcards).load)
    return files.get("backbone.file") or files.get("file (its data)") or []


def precomputed_files(model, view):
    """The user's file of outputs on a view, with that of its image ids where they are apart."""
    path = file_of(model.load, view)
    return [str(file) for file in (path, ids_file(path)) if file is not None]


def script_of(name):
    """A function from wildcards to the script of a stage: another where the outputs are given."""
    return lambda wildcards: (
        f"precomputed_{name}.py" if model_of(wildcards).precomputed else f"{name}.py"
    )


def border_of(study, view):
    """Pixels that are cut off at each side of a view's images: its data sets agree on them."""
    return max(PLAN.datasets[name].border for name in study.view(view)["datasets"])


def among_of(study, view):
    """The classes among which a target's predictions are taken: a list, `labeled`, or none."""
    name = study.targets[view]["logits"] if view in study.targets else None
    return name if name in (None, "labeled") else read_classes(name, "logits")


def subsets_of(study):
    """The lists of classes that targets are scored on, by target."""
    found = {key: among_of(study, key) for key in study.targets}
    return {key: among for key, among in found.items() if isinstance(among, list)}


def evaluated(kind):
    """The views and logits that an evaluation reads; the source's own may come from two views."""
    pattern = {
        "view": f"{RESULTS}/{{study}}/views/{{view}}.parquet",
        "logits": f"{RESULTS}/{{study}}/{{stage}}/{{view}}/{{model}}.safetensors",
    }[kind]

    def files(wildcards):
        views = [wildcards.view]
        if wildcards.view == "source" and study_of(wildcards).id:
            views = ["source", "id"]
        study = study_of(wildcards)
        streamed = wildcards.view in study.targets and study.targets[wildcards.view]["streamed"]
        stage = "predictions" if streamed else "logits"
        return [
            pattern.format(study=study.name, view=view, model=wildcards.model, stage=stage)
            for view in views
        ]

    return files


def cached_targets(study):
    """The targets whose logits are kept; of streamed ones there are records only."""
    return [key for key, target in study.targets.items() if not target["streamed"]]


def streamed_targets(study):
    """The targets of which there are records only."""
    return [key for key, target in study.targets.items() if target["streamed"]]


def scored_of(study):
    """The classes that each target is scored on: labeled ones by domain, or those predicted among."""
    return {
        key: {"classes": target["classes"], "among": among_of(study, key)}
        for key, target in study.targets.items()
    }


def forwarded_views(study):
    """The views that logits are kept for: the source's, its further labeled images, targets."""
    return ["source", *(["id"] if study.id else []), *cached_targets(study)]


def forwarded(study):
    """Every model with every view that its logits are kept for."""
    return [[model, view] for model in study.models for view in forwarded_views(study)]


def extra_outputs_of(folder, kinds):
    """A function from wildcards to a model's manifest of passes, if its study needs any of a sort."""
    return lambda wildcards: (
        f"{RESULTS}/{wildcards.study}/{folder}/{wildcards.model}.json"
        if getattr(study_of(wildcards), kinds)
        else []
    )


def all_extra_outputs_of(folder, kinds):
    """A function from wildcards to the manifests of passes of all models, if there are any."""
    every = per_model(f"{RESULTS}/{{study}}/{folder}/{{model}}.json")
    return lambda wildcards: every(wildcards) if getattr(study_of(wildcards), kinds) else []


def temperature_of(wildcards):
    """The calibration, where passes are of outputs at a temperature and the study scales them."""
    study = study_of(wildcards)
    wanted = (
        "jacobian" in study.kinds and study.calibration["scale"] and not is_precomputed(wildcards)
    )
    return f"{RESULTS}/{study.name}/calibration/{wildcards.model}.json" if wanted else []


def metrics_files(wildcards):
    """The metrics of single models, and those of all models together."""
    folder = f"{RESULTS}/{wildcards.study}"
    single = expand(f"{folder}/metrics/{{model}}.parquet", model=list(study_of(wildcards).models))
    together = (
        [f"{folder}/statistics/agreement_on_the_line.parquet"]
        if study_of(wildcards).agreement_on_the_line
        else []
    )
    return [*single, *together]


def profiles_of(wildcards):
    """The profiles that an analysis reads, one a model."""
    folder = f"{RESULTS}/{wildcards.study}/profiles/{ANALYSES[wildcards.analysis].profile}"
    return expand(f"{folder}/{{model}}.parquet", model=list(study_of(wildcards).models))


def n_pairs_of(wildcards):
    """The numbers of pairs that a model is also scored at: those asked for, and all pairs."""
    pairs = study_of(wildcards).pairs
    return sorted({*pairs["n_pairs_sweep"], pairs["max_pairs"]}) if pairs["n_pairs_sweep"] else []


def evaluations(wildcards):
    study = study_of(wildcards)
    return expand(
        f"{RESULTS}/{study.name}/evaluations/{{view}}/{{model}}.parquet",
        view=["source", *study.targets],
        model=list(study.models),
    )


def matches(wildcards):
    study = study_of(wildcards)
    return expand(
        f"{RESULTS}/{study.name}/class_matched_scores/{{target}}/{{model}}.parquet",
        target=[key for key, target in study.targets.items() if target["classes"]],
        model=list(study.models),
    )


# The template of the report takes an analysis' caption from here: no job depends on its words.
config["captions"] = {
    name: (SCRIPTS / "stamp/report/analyses" / name / "caption.rst").read_text()
    for name in ANALYSES
}
DRAWN = [
    name for name in ANALYSES if (SCRIPTS / "stamp/report/analyses" / name / "figure.py").is_file()
]


def needed(kind, files):
    """A function from wildcards to files of a kind, for the analyses that read it."""
    return lambda wildcards: files(wildcards) if kind in ANALYSES[wildcards.analysis].inputs else []


def options_of(study, analysis):
    """The settings of a study that only this analysis takes."""
    return {key: study.statistics[key] for key in ANALYSES[analysis].options}


def analysis_ends(study):
    """What the further analyses of a study leave behind."""
    folder = f"{RESULTS}/{study.name}"
    drawn = [name for name in study.analyses if name in DRAWN]
    return [
        *expand(
            f"{folder}/analyses/{{analysis}}{{ending}}",
            analysis=study.analyses,
            ending=[".csv", "_models.csv", ".txt"],
        ),
        *expand(f"{folder}/figures/{{analysis}}.{{kind}}", analysis=drawn, kind=["png", "pdf"]),
    ]
