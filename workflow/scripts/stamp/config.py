"""The configuration, read and checked before anything runs.

Files are checked against the schemas in ``workflow/schemas`` and against each other; a mistake is a
:class:`~stamp.errors.UserError` that names the file, the key and what would be right. Planning uses
this module, so it imports nothing heavy. Defaults live here, never in a schema: Snakemake's own
validation would write them into the configuration, and a new default would rerun the zoo.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from stamp.errors import UserError, suggest
from stamp.models.registry import SOURCES
from stamp.preprocessing import Preprocessing, merged

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
ADAPTERS = Path(__file__).resolve().parent / "datasets"
RESERVED = ("source", "id", "train")

PAIR_DEFAULTS = {
    "mode": "all_consecutive",
    "order": "order",
    "random": "different_group",
    "pool": "reuse",
    "also": {},
}
CALIBRATION_DEFAULTS = {
    "scale": False,
    "exclude": "none",
    "temperature_above": 3.0,
    "chance_factor": 5.0,
    "chance_auroc": 0.55,
}
STATISTICS_DEFAULTS = {"permutations": 10_000, "resamples": 10_000, "level": 0.95, "minimum": 10}
FOLDERS = {"studies": "config/studies", "zoo": "config/zoo", "datasets": "config/datasets.yaml"}


@dataclass(frozen=True, slots=True)
class Model:
    """One entry of a zoo: ``load`` is all that a per-model job may know of it."""

    key: str
    load: dict[str, Any]
    label: str
    family: str
    objective: str
    regime: str
    saw: tuple[str, ...]
    pixels: Preprocessing

    @property
    def trained(self) -> bool:
        """Whether a rule trains this model."""
        return SOURCES[self.load["source"]].trained

    @property
    def module(self) -> str:
        """The library module that loads this kind of model."""
        return SOURCES[self.load["source"]].module


@dataclass(frozen=True, slots=True)
class Dataset:
    """One entry of the data sets' file."""

    key: str
    adapter: str
    access: str
    notice: str
    options: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Study:
    """One experiment with every default filled in."""

    name: str
    title: str
    notice: str
    task: str
    classes: list[str]
    source: dict[str, Any]
    pairs: dict[str, Any]
    calibration: dict[str, Any]
    id: dict[str, Any] | None
    targets: dict[str, dict[str, Any]]
    models: dict[str, Model]
    statistics: dict[str, Any]

    def view(self, name: str) -> dict[str, Any]:
        """Which images a view holds, as plain values: data sets, domains, split."""
        if name == "train":
            return {**self.source_images, "split": self.source["train"]}
        if name in ("source", "id"):
            return {**self.source_images, "split": self.id["split"] if self.id else None}
        target = self.targets[name]
        return {key: target.get(key) for key in ("datasets", "domains", "split")}

    @property
    def source_images(self) -> dict[str, Any]:
        """The source's data set and domains."""
        return {"datasets": [self.source["dataset"]], "domains": self.source.get("domains")}

    @property
    def kinds(self) -> list[str]:
        """The kinds of pairs of the study, the headline's first, random last."""
        also = [kind for kind in self.pairs["also"] if kind != self.pairs["semantic"]]
        return [self.pairs["semantic"], *also, "random"]


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole configuration, checked."""

    seed: int
    device: str
    threads: int
    results: str
    studies: dict[str, Study]
    datasets: dict[str, Dataset] = field(default_factory=dict)


@cache
def _validator(name: str) -> Any:
    from jsonschema import Draft202012Validator
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    pixels = yaml.safe_load((SCHEMAS / "pixels.schema.yaml").read_text())
    registry: Any = Registry().with_resource(
        "pixels.schema.yaml", DRAFT202012.create_resource(pixels)
    )
    schema = yaml.safe_load((SCHEMAS / f"{name}.schema.yaml").read_text())
    return Draft202012Validator(schema, registry=registry)


def _explain(error: Any) -> str:
    """One schema violation in words, with a suggestion where a name was mistyped."""
    where = ".".join(str(part) for part in error.absolute_path)
    at = f"{where}: " if where else ""
    if error.validator == "additionalProperties" and isinstance(error.schema, dict):
        known = error.schema.get("properties", {})
        unknown = next(key for key in error.instance if key not in known)
        return f"{at}unknown key '{unknown}': {suggest(unknown, known)}"
    if error.validator == "enum":
        options = error.validator_value
        known = suggest(str(error.instance), map(str, options))
        return f"{at}unknown value '{error.instance}': {known}"
    if error.validator == "required":
        missing = next(key for key in error.validator_value if key not in error.instance)
        return f"{at}the key '{missing}' is missing"
    return f"{at}{error.message}"


def check(name: str, document: Any, file: str) -> None:
    """Refuse a document that the schema ``name`` does not allow, in one line."""
    errors = sorted(_validator(name).iter_errors(document), key=lambda error: list(error.path))
    if errors:
        raise UserError(f"{file}: {_explain(errors[0])}")


class _UniqueKeys(yaml.SafeLoader):
    """YAML in which a key given twice is a mistake, not the last one silently."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key '{key}' stands twice", problem_mark=key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path, what: str) -> Any:
    """A YAML file's content; what is not there or not YAML is a user's mistake."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        others = [file.stem for file in path.parent.glob("*.yaml")] if path.parent.is_dir() else []
        raise UserError(
            f"unknown {what} '{path.stem}' (no {path}): {suggest(path.stem, others)}"
        ) from None
    try:
        return yaml.load(text, Loader=_UniqueKeys)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{path}, line {line}: {error.problem or 'not valid YAML'}") from None


def _sorted(value: Any) -> Any:
    """Plain builtins with sorted keys: what may stand in a rule's ``params``."""
    return json.loads(json.dumps(value, sort_keys=True))


def read_zoo(file: Path) -> dict[str, dict[str, Any]]:
    """The entries of one zoo file, checked."""
    entries = read_yaml(file, "zoo") or {}
    check("zoo", entries, str(file))
    for key, entry in entries.items():
        source = entry["load"]["source"]
        if source not in SOURCES:
            raise UserError(f"{file}: {key}: unknown source '{source}': {suggest(source, SOURCES)}")
        check(f"load/{source}", entry["load"], f"{file}: {key}: load")
        weights = entry["load"].get("file")
        if weights is not None and not Path(weights).is_file():
            raise UserError(f"{file}: {key}: load.file: no such file '{weights}'")
    return entries


def _models(name: str, document: Mapping[str, Any], folder: Path) -> dict[str, Model]:
    found: dict[str, Model] = {}
    for zoo in document["zoo"]:
        file = folder / f"{zoo}.yaml"
        for key, entry in read_zoo(file).items():
            if key in found:
                raise UserError(
                    f"{file}: model '{key}' stands in another zoo of study '{name}' too"
                )
            load = _sorted(entry["load"])
            pixels = merged(document["pixels"], load.get("pixels", {}))
            load["pixels"] = pixels.settings
            texts = {part: entry[part] for part in ("label", "family", "objective", "regime")}
            saw = tuple(entry.get("saw", ()))
            found[key] = Model(key=key, load=_sorted(load), saw=saw, pixels=pixels, **texts)
    chosen = document.get("models", list(found))
    for key in chosen:
        if key not in found:
            raise UserError(f"study '{name}': unknown model '{key}': {suggest(key, found)}")
    return {key: found[key] for key in sorted(chosen)}


def _dataset(key: str, datasets: Mapping[str, Dataset], where: str) -> None:
    if key not in datasets:
        raise UserError(f"{where}: unknown data set '{key}': {suggest(key, datasets)}")


def _targets(where: str, document: Mapping[str, Any], datasets: Mapping[str, Dataset]) -> Any:
    targets = {}
    for key, target in (document.get("targets") or {}).items():
        if key in RESERVED:
            raise UserError(f"{where}: targets: '{key}' is a reserved name")
        named = target["dataset"] if isinstance(target["dataset"], list) else [target["dataset"]]
        for dataset in named:
            _dataset(dataset, datasets, f"{where}: targets.{key}")
        for domain, classes in target.get("classes", {}).items():
            for name in classes:
                if name not in document["classes"]:
                    known = suggest(name, document["classes"])
                    raise UserError(
                        f"{where}: targets.{key}.classes.{domain}: unknown class '{name}': {known}"
                    )
        filled = {"outcomes": "domain", "classes": {}, "title": key, **target, "datasets": named}
        targets[key] = _sorted(filled)
    return targets


def read_study(name: str, folder: Path, zoo: Path, datasets: Mapping[str, Dataset]) -> Study:
    """A study's file, checked against the schema, the zoos and the data sets."""
    file = folder / f"{name}.yaml"
    document = read_yaml(file, "study")
    check("study", document, str(file))
    where = str(file)
    _dataset(document["source"]["dataset"], datasets, f"{where}: source")
    pairs = {**PAIR_DEFAULTS, "count": document["pairs"]["largest"], **document["pairs"]}
    if pairs["count"] > pairs["largest"]:
        raise UserError(
            f"{where}: pairs.count {pairs['count']} is more than pairs.largest {pairs['largest']}"
        )
    if document["calibration"]["split"] == pairs["split"]:
        raise UserError(
            f"{where}: calibration.split and pairs.split are both '{pairs['split']}': "
            "calibration images must be disjoint from the pool"
        )
    models = _models(name, document, zoo)
    if "train" not in document["source"]:
        for key, model in models.items():
            if model.trained:
                raise UserError(f"{where}: source.train is missing, and model '{key}' is trained")
    notice = document.get("notice") or datasets[document["source"]["dataset"]].notice
    return Study(
        name=name,
        title=document["title"],
        notice=notice,
        task=document["task"],
        classes=list(document["classes"]),
        source=_sorted(document["source"]),
        pairs=_sorted(pairs),
        calibration=_sorted({**CALIBRATION_DEFAULTS, **document["calibration"]}),
        id=_sorted(document["id"]) if "id" in document else None,
        targets=_targets(where, document, datasets),
        models=models,
        statistics=_sorted({**STATISTICS_DEFAULTS, **document.get("statistics", {})}),
    )


def read_datasets(file: Path) -> dict[str, Dataset]:
    """The data sets' file, checked."""
    entries = read_yaml(file, "data sets' file") or {}
    check("datasets", entries, str(file))
    adapters = [path.stem for path in ADAPTERS.glob("*.py") if path.stem != "__init__"]
    for key, entry in entries.items():
        if entry["adapter"] not in adapters:
            known = suggest(entry["adapter"], adapters)
            raise UserError(f"{file}: {key}: unknown adapter '{entry['adapter']}': {known}")
    return {
        key: Dataset(
            key=key,
            adapter=entry["adapter"],
            access=entry["access"],
            notice=entry.get("notice", ""),
            options=_sorted(entry.get("options", {})),
        )
        for key, entry in entries.items()
    }


def load(document: Mapping[str, Any], file: str = "config/config.yaml") -> Plan:
    """The plan of a configuration; the first mistake in any file is raised."""
    check("config", dict(document), file)
    folders = {**FOLDERS, **document.get("folders", {})}
    results = document.get("results", "results").rstrip("/")
    datasets = read_datasets(Path(folders["datasets"]))
    studies = {}
    for name in document["studies"]:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name) or name == "datasets":
            raise UserError(f"{file}: studies: '{name}' can't be the name of a study")
        studies[name] = read_study(name, Path(folders["studies"]), Path(folders["zoo"]), datasets)
    return Plan(
        seed=document["seed"],
        device=document.get("device", "auto"),
        threads=document.get("threads", 1),
        results=results,
        studies=studies,
        datasets=datasets,
    )
