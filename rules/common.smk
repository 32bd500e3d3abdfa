"""What the stages share: the plan, the code of a job, and files and settings by their wildcards."""

import os
import re
import sys
from pathlib import Path

# Where this file lies, not the Snakefile that is run: another workflow may have ours as a module.
HERE = workflow.current_basedir
if isinstance(HERE, os.PathLike):
    ROOT = Path(HERE).parent
    SCRIPTS = ROOT / "workflow" / "scripts"
    if str(SCRIPTS) not in sys.path:
        sys.path.insert(0, str(SCRIPTS))
else:  # from a Git repository only single files can be had: the others are the package's
    try:
        from stamp.core.shipped import ROOT
    except ImportError:
        sys.exit(f"stamp: the workflow from {HERE} needs its package: pip install it first")
    SCRIPTS = ROOT / "workflow" / "scripts"
    for file in sorted(ROOT.glob("rules/*.smk")):
        if file.read_text().rstrip() != Path(workflow.source_path(file.name)).read_text().rstrip():
            sys.exit(f"stamp: {file} is not that of {HERE}: install the package of that version")

from stamp.config import plan as configuration
from stamp.config import view_names
from stamp.config.registries.analyses import ANALYSES
from stamp.config.wildcards import any_of
from stamp.core import shipped
from stamp.core.kept_code_digests import kept_code_digest
from stamp.core.device import choose as choose_device
from stamp.core.environment import prepare as prepare_jobs
from stamp.core.errors import UserError
from stamp.core.file_digest import planned, remember_in
from stamp.core.interruption import Interruption
from stamp.core.job_records import keep as keep_records
from stamp.core.snakemake_speed import plan_faster

plan_faster()
try:
    PLAN = configuration.load(config)
    DEVICE = choose_device(PLAN.device)
except UserError as mistake:
    sys.exit(f"stamp: {mistake}")

INTERRUPTION = Interruption()
INTERRUPTION.watch()
RESULTS = PLAN.results
prepare_jobs(SCRIPTS)
remember_in(Path(RESULTS, ".digests.json"))

ENVIRONMENT = str(ROOT / "envs" / "stamp.yaml")
GPU = 1 if DEVICE == "cuda" else 0
DECODERS = 4  # threads that decode images while a GPU runs a model
FIGURES = ["targets", "ranks", "forest", "outranks"]
# How the report groups what a study leaves. Each result there has one label: of two that come in
# equal halves Snakemake 9 makes a switch, and shows no page where a half has no counterpart.
MAIN, OTHERS = "Main results", "Other analyses"
# The template of the report takes an analysis' caption from here: no job depends on its words.
ANALYSIS_FOLDER = shipped.LIBRARY / "report" / "analyses"
config["captions"] = {
    name: (ANALYSIS_FOLDER / name / "caption.rst").read_text() for name in ANALYSES
}
DRAWN = [name for name in ANALYSES if (ANALYSIS_FOLDER / name / "figure.py").is_file()]


def one_of(names):
    """A wildcard constraint that lets exactly these names through."""
    return any_of(names) or "none^"


wildcard_constraints:
    study=one_of(PLAN.studies),
    dataset=one_of(PLAN.datasets),
    model=one_of(PLAN.models),
    target=one_of(PLAN.targets),
    view=one_of({*view_names.RESERVED, *PLAN.targets}),


def study_of(wildcards):
    """The study of a job."""
    return PLAN.studies[wildcards.study]


def model_of(wildcards):
    """The model of a job; one that the study does not have is not made by any rule."""
    models = study_of(wildcards).models
    if wildcards.model not in models:
        raise ValueError(f"study '{wildcards.study}' has no model '{wildcards.model}'")
    return models[wildcards.model]


def of_study(*path):
    """A function from wildcards to a part of the study: `of_study("pairs", "semantic")`."""

    def part(wildcards):
        value = study_of(wildcards)
        for name in path:
            value = getattr(value, name)
        return value

    return part


def of_model(part):
    """A function from wildcards to a part of the model."""
    return lambda wildcards: getattr(model_of(wildcards), part)


def of_dataset(part):
    """A function from wildcards to a part of the data set."""
    return lambda wildcards: getattr(PLAN.datasets[wildcards.dataset], part)


def at_view(method, wildcard="view"):
    """A function from wildcards to what a method of the study says of the view (or target)."""
    return lambda wildcards: getattr(study_of(wildcards), method)(getattr(wildcards, wildcard))


def code_of(script, *modules):
    """A function from wildcards to the digest of a script's code, for a rule's params.

    ``modules`` are those that the script imports by a name at run time. Names may hold wildcards in
    braces or be functions of wildcards. Nothing is read before a job is planned.
    """

    def digest(wildcards):
        named = dict(wildcards.items())
        names = (script, *modules)
        first, *found = [one(wildcards) if callable(one) else one.format(**named) for one in names]
        return kept_code_digest(SCRIPTS / first, *found)

    return digest


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


def batch_size(wildcards, resources):
    """How many images a model is run on at a time.

    With `resources` among the arguments, Snakemake does not compare it with an earlier run.
    """
    return PLAN.inference.batch


def gpus(wildcards):
    """The GPUs of a job that runs a model; precomputed logits need none."""
    return 0 if model_of(wildcards).precomputed else GPU


def files_of(pattern, **parts):
    """A function from wildcards to files of a study, one for each member of some of its parts.

    `files_of("logits/{view}/{model}.safetensors", view="cached_targets")` has the job's own model.
    """

    def files(wildcards):
        lists = {name: list(getattr(study_of(wildcards), part)) for name, part in parts.items()}
        return expand(f"{RESULTS}/{{study}}/{pattern}", **{**dict(wildcards.items()), **lists})

    return files


def files_if(part, pattern, **parts):
    """As :func:`files_of`, for studies that have a part; none for others."""
    files = files_of(pattern, **parts)
    return lambda wildcards: files(wildcards) if getattr(study_of(wildcards), part) else []


def file_if(part, pattern):
    """The only one of :func:`files_if`."""
    files = files_if(part, pattern)
    return lambda wildcards: files(wildcards)[0] if files(wildcards) else []


def studies_due(jobs, rule):
    """The studies that a rule has something to do for."""
    return sorted({job.wildcards.study for job in jobs if job.rule.name == rule})
