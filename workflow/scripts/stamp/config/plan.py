"""The whole configuration, read and checked before anything runs.

A mistake is a :class:`~stamp.core.errors.UserError` that names the file, the key and what would be
right. Planning uses this module, so it imports nothing heavy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal
from zlib import crc32

from pydantic import Field

from stamp.config.datasets import Dataset, read_datasets
from stamp.config.documents import Names, Section, parsed, read_yaml
from stamp.config.read_study import StudyFiles, read_study
from stamp.config.study import Study
from stamp.core.errors import UserError

CONFIG = "config/config.yaml"


class Folders(Section):
    """Where the other configuration files are."""

    studies: str = Field("config/studies", description="folder of the studies' files")
    zoo: str = Field("config/zoo", description="folder of the zoo files")
    datasets: str = Field("config/datasets.yaml", description="the data sets' file")


class Limits(Section):
    """The most that a job may ask a cluster for, also on its last retry."""

    mem_mb: Annotated[int, Field(ge=1)] | None = Field(None, description="megabytes of memory")
    runtime: Annotated[int, Field(ge=1)] | None = Field(None, description="minutes")


class InferenceSettings(Section):
    """How models are run; what changes numbers is off, and runs them again when switched on."""

    batch: Annotated[int, Field(ge=1)] = Field(
        128,
        description="images that a model is run on at a time; halved as often as it takes where "
        "the memory of the GPU runs out. Changing it runs nothing again",
    )
    streamed_models: Annotated[int, Field(ge=1)] = Field(
        8,
        description="models of one preprocessing that are run over a `streamed` target together, "
        "so that its images are decoded once for all of them. Changing it runs nothing again; 1 "
        "gives each model a job of its own",
    )
    tf32: bool = Field(
        False,
        description="let CUDA multiply float32 numbers as TF32, with 10 bits of mantissa: faster, "
        "other numbers",
    )
    cudnn_benchmark: bool = Field(
        False,
        description="let cuDNN try its algorithms and take the fastest: two runs may take two "
        "different ones, so their numbers differ by rounding",
    )
    compile: bool = Field(
        False,
        description="compile each model with `torch.compile` before it is run: a minute per job, "
        "then faster; numbers differ by rounding",
    )

    @property
    def numerics(self) -> dict[str, bool]:
        """The switches that are on and change numbers."""
        names = ("tf32", "cudnn_benchmark", "compile")
        return {name: True for name in names if getattr(self, name)}


class ConfigFile(Section):
    """config/config.yaml: which studies run, and how."""

    studies: Names = Field(
        description="names of the studies to run, each a file in `config/studies/`"
    )
    seed: Annotated[int, Field(ge=0)] = Field(
        description="the one number that everything random is drawn from"
    )
    device: Literal["auto", "cuda", "cpu"] = Field(
        "auto", description="`auto` (CUDA where there is a GPU), `cuda` or `cpu`"
    )
    threads: Annotated[int, Field(ge=1)] = Field(
        1, description="CPU threads of each job that trains or runs a model"
    )
    warm_start: bool = Field(
        True,
        description="whether jobs are forked from a process that has imported torch, polars and "
        "the like already; only on this machine's CPU, never with conda, a container or a cluster",
    )
    allow_code: bool = Field(
        False, description="whether models of the source `python` may run code of yours"
    )
    results: str = Field("results", description="folder that results are written to")
    data: str = Field(
        "data",
        description="folder that holds the folders of data sets which are downloaded or put there "
        "by hand",
    )
    folders: Folders = Field(
        Folders(),
        description="where the other files are: `studies` and `zoo` (folders), `datasets` (a file)",
        json_schema_extra={"absent": "`config/...`"},
    )
    inference: InferenceSettings = Field(
        InferenceSettings(),
        description="how models are run: `batch`, `streamed_models`, `tf32`, `cudnn_benchmark`, "
        "`compile`; see below",
        json_schema_extra={"absent": "see below"},
    )
    limits: Limits = Field(
        Limits(),
        description="the most that a job may ask a cluster for: `mem_mb`, `runtime` (minutes); see "
        "`docs/cluster.md`",
        json_schema_extra={"absent": "no limit"},
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole configuration, checked."""

    seed: int
    device: str
    threads: int
    results: str
    studies: dict[str, Study]
    datasets: dict[str, Dataset]
    folders: Folders = field(default_factory=Folders)
    allow_code: bool = False
    limits: dict[str, int] = field(default_factory=dict)
    inference: InferenceSettings = field(default_factory=InferenceSettings)
    warm_start: bool = True

    def read_study(self, name: str, may_lack_models: bool = False) -> Study:
        """A study by its name, whether or not it is one of those that run."""
        studies, zoo = Path(self.folders.studies), Path(self.folders.zoo)
        files = StudyFiles(studies, zoo, self.datasets, self.allow_code, may_lack_models)
        return read_study(name, files)

    def has_study(self, name: str) -> bool:
        """Whether there is a study's file of this name."""
        return (Path(self.folders.studies) / f"{name}.yaml").is_file()

    @property
    def targets(self) -> set[str]:
        """The targets of all studies."""
        return {key for study in self.studies.values() for key in study.targets}

    @property
    def models(self) -> set[str]:
        """The models of all studies."""
        return {key for study in self.studies.values() for key in study.models}

    @property
    def preprocessings(self) -> dict[str, dict[str, Any]]:
        """Every preprocessing of the models, by its key."""
        models = [model for study in self.studies.values() for model in study.models.values()]
        return {model.preprocessing.key: model.preprocessing.settings for model in models}

    @property
    def streamed_preprocessings(self) -> set[str]:
        """The preprocessings of models that are run over streamed targets together."""
        models = [model for study in self.studies.values() for model in study.models.values()]
        return {one.streamed_preprocessing.key for one in models if one.streams_with_others}

    def trained_by(self, rule: str) -> set[str]:
        """The models that a rule trains."""
        return {key for study in self.studies.values() for key in study.trained_by(rule)}

    @property
    def backbones(self) -> set[str]:
        """The frozen backbones of all probes, by their keys."""
        return {key for study in self.studies.values() for key in study.backbones}

    def seed_of(self, model: str) -> int:
        """The seed of one model: the configured one and the model's own name."""
        return self.seed * 1_000_003 + crc32(model.encode())

    def downloads(self, dataset: str) -> list[tuple[str, str]]:
        """What is downloaded for a data set and the one that it relabels: keys and file names."""
        first = self.datasets[dataset]
        sets = [first, *([self.datasets[first.relabels]] if first.relabels else [])]
        return [(each.key, name) for each in sets if each.download for name in each.files]

    def border(self, study: Study, view: str) -> int:
        """Pixels that are cut off at each side of a view's images: its data sets agree on them."""
        return max(self.datasets[name].border for name in study.view(view)["datasets"])

    def image_record(self, dataset: str) -> Path:
        """Where the job that finds a data set's images keeps what they hold."""
        return Path(self.results, "datasets", dataset, ".images.json")

    def edited_images(self, *datasets: str) -> list[str | None] | None:
        """What stands for the user's own images in data sets; None where these are of nobody."""
        found = [self.datasets[name].edited_images(self.image_record(name)) for name in datasets]
        return found if any(found) else None


def load(document: Mapping[str, Any], file: str = CONFIG) -> Plan:
    """The plan of a configuration; the first mistake in any file is raised."""
    settings = parsed(ConfigFile, dict(document), file)
    plan = _without_studies(settings)
    for name in settings.studies:
        check_study_name(name, f"{file}: studies")
    return replace(plan, studies={name: plan.read_study(name) for name in settings.studies})


def check_study_name(name: str, where: str) -> None:
    """Refuse a name that can't be a folder of results beside those of the data sets."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name) or name == "datasets":
        fit = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()
        meant = f", such as '{fit}'" if fit and fit != "datasets" else ""
        raise UserError(
            f"{where}: '{name}' can't be the name of a study: only letters, digits, - and _, "
            f"and not 'datasets'{meant}"
        )


def read_plan(studies: Sequence[str] | None = None, **changes: Any) -> Plan:
    """The plan of the project in the current folder; ``studies`` may be others than its own.

    ``changes`` override keys of ``config.yaml``, as ``--config`` does in a run.
    """
    if not Path(CONFIG).is_file():
        raise UserError(
            f"no {CONFIG} in {Path.cwd()}: go to a project's folder, or start one (new-study)"
        )
    document = read_yaml(Path(CONFIG), "configuration")
    parsed(ConfigFile, document, CONFIG)
    return load({**document, **({"studies": list(studies)} if studies else {}), **changes}, CONFIG)


def read_project() -> Plan:
    """The plan of the current folder's project without its studies; defaults outside of one."""
    document: dict[str, Any] = {"seed": 0, "studies": ["none"]}
    if Path(CONFIG).is_file():
        document = read_yaml(Path(CONFIG), "configuration")
    return _without_studies(parsed(ConfigFile, document, CONFIG), may_lack_datasets=True)


def _without_studies(settings: ConfigFile, may_lack_datasets: bool = False) -> Plan:
    sets = Path(settings.folders.datasets)
    known = sets.is_file() or not may_lack_datasets
    return Plan(
        seed=settings.seed,
        device=settings.device,
        threads=settings.threads,
        warm_start=settings.warm_start,
        results=settings.results.rstrip("/"),
        studies={},
        datasets=read_datasets(sets, settings.data.rstrip("/")) if known else {},
        folders=settings.folders,
        allow_code=settings.allow_code,
        limits=settings.limits.model_dump(exclude_unset=True),
        inference=settings.inference,
    )
