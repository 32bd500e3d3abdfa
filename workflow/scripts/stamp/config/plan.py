"""The configuration, read and checked before anything runs.

Files are checked against the schemas in ``workflow/schemas`` and against each other; a mistake is a
:class:`~stamp.core.errors.UserError` that names the file, the key and what would be right. Planning uses
this module, so it imports nothing heavy. Defaults live here, never in a schema: Snakemake's own
validation would write them into the configuration, and a new default would rerun the zoo.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from stamp.config import class_lists as classlists
from stamp.config.analyses import ANALYSES
from stamp.config.extra_outputs import DEFAULTS as EXTRA_OUTPUT_DEFAULTS
from stamp.config.extra_outputs import OF_TARGETS, in_order
from stamp.config.model_sources import SOURCES
from stamp.config.precomputed import PROBABILITIES, ids_file
from stamp.config.preprocessing import Preprocessing, merged
from stamp.config.user_code import digest, source_files
from stamp.config.view_names import RESERVED
from stamp.core.errors import UserError, suggest

SCHEMAS = Path(__file__).resolve().parents[3] / "schemas"
ADAPTERS = Path(__file__).resolve().parents[1] / "data" / "adapters"
MADE = ("generated", "bundled")

PAIR_DEFAULTS = {
    "mode": "all_consecutive",
    "order": "order",
    "random": "different_group",
    "pool": "reuse",
    "also": {},
    "same": [],
    "n_pairs_sweep": [],
}
CALIBRATION_DEFAULTS = {
    "scale": False,
    "exclude": "none",
    "temperature_above": 3.0,
    "chance_factor": 5.0,
    "chance_auroc": 0.55,
}
STATISTICS_DEFAULTS = {
    "permutations": 10_000,
    "resamples": 10_000,
    "level": 0.95,
    "minimum": 10,
    "mixed": False,
    "delta": None,  # the median of each outcome
    "equivalence": None,  # that of the analysis: 0.1
}
CONFIG = "config/config.yaml"
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
    trained_on: tuple[str, ...]
    contamination: tuple[str, ...]
    preprocessing: Preprocessing
    backbone: str = ""

    @property
    def trainer(self) -> str | None:
        """The rule that trains this model; none for published weights."""
        return None if "checkpoint" in self.load else SOURCES[self.load["source"]].trainer

    @property
    def module(self) -> str:
        """The library module that loads this kind of model."""
        return SOURCES[self.load["source"]].module

    @property
    def precomputed(self) -> bool:
        """Whether the model is a file of outputs: nothing is run."""
        return SOURCES[self.load["source"]].precomputed


@dataclass(frozen=True, slots=True)
class Dataset:
    """One entry of the data sets' file."""

    key: str
    adapter: str
    access: str
    notice: str
    options: dict[str, Any]
    root: str
    files: dict[str, dict[str, Any]]
    images_url: str | None
    download: bool
    border: int
    relabels: str | None

    @property
    def made(self) -> bool:
        """Whether a rule makes the images, from code or from a package."""
        return self.access in MADE


@dataclass(frozen=True, slots=True)
class Study:
    """One experiment with every default filled in."""

    name: str
    title: str
    notice: str
    task: str
    classes: list[str]
    source: dict[str, Any]
    preprocessing: dict[str, Any]
    pairs: dict[str, Any]
    calibration: dict[str, Any]
    id: dict[str, Any] | None
    targets: dict[str, dict[str, Any]]
    models: dict[str, Model]
    unavailable: dict[str, Any]
    statistics: dict[str, Any]
    analyses: list[str]
    metrics: list[str]
    extra_outputs: dict[str, Any]

    def _of_metrics(self) -> list[str]:
        """The extra inference outputs that the study's metrics need, if they are compared."""
        from stamp.config.metrics import METRICS

        compares = any("metrics" in ANALYSES[name].reads for name in self.analyses)
        compared = self.metrics if compares else []
        return in_order(
            kind for one in METRICS if one.name in compared for kind in one.extra_outputs
        )

    @property
    def metric_kinds(self) -> list[str]:
        """The extra inference outputs on the source that the study's metrics need."""
        return [kind for kind in self._of_metrics() if kind not in OF_TARGETS]

    @property
    def target_kinds(self) -> list[str]:
        """The extra inference outputs on targets that the study's metrics need.

        None where every target is streamed: no pictures of it are kept.
        """
        if all(target["streamed"] for target in self.targets.values()):
            return []
        return [kind for kind in self._of_metrics() if kind in OF_TARGETS]

    @property
    def agreement_on_the_line(self) -> bool:
        """Whether any of the study's metrics needs all models at once."""
        from stamp.config.metrics import METRICS

        return any(one.name in self.metrics and not one.of_one_model for one in METRICS)

    @property
    def kinds(self) -> list[str]:
        """The extra inference outputs on the source that the study's metrics and analyses need."""
        analyses = [kind for name in self.analyses for kind in ANALYSES[name].extra_outputs]
        return in_order([*self.metric_kinds, *analyses])

    def view(self, name: str) -> dict[str, Any]:
        """Which images a view holds, as plain values: data sets, domains, split."""
        if name in ("train", "val"):
            return {**self.source_images, "split": self.source[name]}
        if name in ("source", "id"):
            return {**self.source_images, "split": self.id["split"] if self.id else None}
        target = self.targets[name]
        return {key: target.get(key) for key in ("datasets", "domains", "split")}

    @property
    def source_images(self) -> dict[str, Any]:
        """The source's data set and domains."""
        return {"datasets": [self.source["dataset"]], "domains": self.source.get("domains")}

    def classes_of(self, view: str) -> list[str]:
        """The classes that a view may be labeled for: the study's, and those a target merges."""
        return [*self.classes, *(self.targets[view]["merge"] if view in self.targets else ())]

    def contaminated(self) -> dict[str, list[str]]:
        """The targets whose data sets a model was trained or selected on, where there are any."""
        found = {
            key: [
                name
                for name, target in self.targets.items()
                if set(target["datasets"]) & set(model.contamination)
            ]
            for key, model in self.models.items()
        }
        return {key: names for key, names in found.items() if names}


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole configuration, checked."""

    seed: int
    device: str
    threads: int
    results: str
    studies: dict[str, Study]
    datasets: dict[str, Dataset] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)


@cache
def _validator(name: str) -> Any:
    from jsonschema import Draft202012Validator
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    pixels = yaml.safe_load((SCHEMAS / "preprocessing.schema.yaml").read_text())
    registry: Any = Registry().with_resource(
        "preprocessing.schema.yaml", DRAFT202012.create_resource(pixels)
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
            if isinstance(key, (list, dict)):
                break  # which the parser itself refuses
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
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8") from None
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
    except yaml.YAMLError:  # a character that YAML does not know
        raise UserError(f"{path}: not valid YAML") from None


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
        for place, weights in weight_files(entry["load"]).items():
            if not Path(weights).is_file():
                raise UserError(f"{file}: {key}: load.{place}: no such file '{weights}'")
    return entries


def weight_files(block: Mapping[str, Any]) -> dict[str, str]:
    """The local weights files that a ``load`` block names, by their keys."""
    found = {"file": block.get("file")}
    for part in ("checkpoint", "initial", "backbone"):
        settings = block.get(part)
        if isinstance(settings, dict):  # of a model trained from scratch, `backbone` is a word
            found[f"{part}.file"] = settings.get("file")
    for view, file in block.get("files", {}).items():
        found[f"files.{view}"] = file
    if block.get("source") == "logits":
        for key, file in list(found.items()):
            if file is not None and (beside := ids_file(Path(file))):
                found[f"{key} (its image ids)"] = str(beside)
    if block.get("source") == "onnx" and Path(f"{block['file']}.data").is_file():
        found["file (its data)"] = f"{block['file']}.data"  # of networks beyond 2 GB
    return {key: file for key, file in found.items() if file is not None}


def filled(load: Mapping[str, Any], task: str, allow_code: bool, where: str) -> dict[str, Any]:
    """A ``load`` block with what only the study or the disk knows: which kind of probabilities a
    task has, and the digest of a user's code, which is not imported and refused if not allowed.
    """
    load = dict(load)
    if load.get("probabilities"):
        load["probabilities"] = PROBABILITIES[task]
    if load["source"] == "python":
        if not allow_code:
            raise UserError(f"{where}: code is run only with `allow_code: true` in config.yaml")
        load["code"] = digest(source_files(load["function"].partition(":")[0], where))
    return load


def _given(model: Model, views: Iterable[str], where: str) -> None:
    """Refuse a model of outputs that lacks those of a view."""
    if ("file" in model.load) == ("files" in model.load):
        raise UserError(f"{where}: one of file (for all views) and files (by view) is needed")
    for view in views if "files" in model.load else ():
        if view not in model.load["files"]:
            raise UserError(f"{where}.files: none is given for the view '{view}'")


def _models(
    name: str, document: Mapping[str, Any], folder: Path, allow_code: bool
) -> tuple[dict[str, Model], dict[str, Any]]:
    """The models of a study, and what is said of those that can't be scored."""
    found: dict[str, Model] = {}
    reasons: dict[str, str] = {}
    for zoo in document["zoo"]:
        file = folder / f"{zoo}.yaml"
        for key, entry in read_zoo(file).items():
            if key in found:
                raise UserError(
                    f"{file}: model '{key}' stands in another zoo of study '{name}' too"
                )
            skipped = "unavailable" in entry or key not in document.get("models", [key])
            load = _sorted(entry["load"])
            if not skipped:
                load = filled(load, document["task"], allow_code, f"{file}: {key}: load")
            pixels = merged(document["preprocessing"], load.get("preprocessing", {}))
            load["preprocessing"] = pixels.settings
            texts = {part: entry[part] for part in ("label", "family", "objective", "regime")}
            trained_on, contamination = (
                tuple(entry.get(part, ())) for part in ("trained_on", "contamination")
            )
            texts["backbone"] = entry.get("backbone", "")
            found[key] = Model(
                key=key,
                load=_sorted(load),
                trained_on=trained_on,
                contamination=contamination,
                preprocessing=pixels,
                **texts,
            )
            if "unavailable" in entry:
                reasons[key] = entry["unavailable"]
    chosen = document.get("models", list(found))
    for key in chosen:
        if key not in found:
            raise UserError(f"study '{name}': unknown model '{key}': {suggest(key, found)}")
    models = {key: found[key] for key in sorted(chosen) if key not in reasons}
    if not models:
        raise UserError(f"study '{name}': its zoo has no model that can be scored")
    listed = {
        key: {**described(found[key]), "reason": reasons[key]}
        for key in sorted(chosen)
        if key in reasons
    }
    return models, listed


def described(model: Model) -> dict[str, str]:
    """What figures and tables say of a model; nothing that a number depends on."""
    parts = ("label", "family", "objective", "regime", *(["backbone"] if model.backbone else []))
    return {part: getattr(model, part) for part in parts}


def _dataset(key: str, datasets: Mapping[str, Any], where: str) -> None:
    if key not in datasets:
        raise UserError(f"{where}: unknown data set '{key}': {suggest(key, datasets)}")


def read_classes(name: str, where: str) -> list[str]:
    """A list of classes by its name."""
    try:
        return classlists.read(name)
    except UserError as mistake:
        raise UserError(f"{where}: {mistake}") from None


def _known_classes(where: str, names: Iterable[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise UserError(f"{where}: unknown class '{name}': {suggest(name, known)}")


def _targets(where: str, document: Mapping[str, Any], datasets: Mapping[str, Dataset]) -> Any:
    targets, source = {}, document["source"]["dataset"]
    for key, target in (document.get("targets") or {}).items():
        if key in RESERVED:
            raise UserError(f"{where}: targets: '{key}' is a reserved name")
        named = target["dataset"] if isinstance(target["dataset"], list) else [target["dataset"]]
        for dataset in named:
            _dataset(dataset, datasets, f"{where}: targets.{key}")
        at, classes, merge = f"{where}: targets.{key}", document["classes"], target.get("merge", {})
        if merge and document["task"] != "multilabel":
            raise UserError(f"{at}.merge: classes are merged in multilabel studies only")
        for name, parts in merge.items():
            _known_classes(f"{at}.merge.{name}", parts, classes)
            if name in classes:
                raise UserError(f"{at}.merge: '{name}' is a class of the study already")
        borders = {datasets[one].border for one in named}
        if len(borders) > 1:
            raise UserError(f"{at}: its data sets have different borders: {sorted(borders)}")
        if "logits" in target and document["task"] != "multiclass":
            raise UserError(f"{at}.logits: predictions are restricted in multiclass studies only")
        if target.get("streamed") and document["task"] != "multiclass":
            raise UserError(f"{at}.streamed: only multiclass targets can be streamed")
        if target.get("logits", "labeled") != "labeled":
            among = read_classes(target["logits"], f"{at}.logits")
            _known_classes(f"{at}.logits", among, classes)
        if target.get("score") == "matched" and not target.get("classes"):
            raise UserError(f"{at}.score: a matched score needs the target's classes")
        for domain, names in target.get("classes", {}).items():
            _known_classes(f"{at}.classes.{domain}", names, [*classes, *merge])
        filled: dict[str, Any] = {"outcomes": "domain", "classes": {}, "merge": {}, "score": "all"}
        filled |= {"title": key, "logits": None, "streamed": False, **target}
        filled |= {
            "datasets": named,
            "relabelled": all(datasets[one].relabels == source for one in named),
        }
        targets[key] = _sorted(filled)
    return targets


def _metrics(document: Mapping[str, Any], where: str) -> list[str]:
    """The metrics that the study compares STAMP with: those it names, or all that its task has."""
    from stamp.config.metrics import METRICS

    tasks = {one.name: one.tasks for one in METRICS}
    for name in document.get("metrics", []):
        if name not in tasks:
            raise UserError(f"{where}: metrics: unknown metric '{name}': {suggest(name, tasks)}")
        if document["task"] not in tasks[name]:
            only = " and ".join(tasks[name])
            raise UserError(f"{where}: metrics: '{name}' is defined for {only} studies only")
    chosen = document.get("metrics", [name for name in tasks if document["task"] in tasks[name]])
    return [name for name in tasks if name in chosen]


def read_study(
    name: str,
    folder: Path,
    zoo: Path,
    datasets: Mapping[str, Dataset],
    allow_code: bool = False,
) -> Study:
    """A study's file, checked against the schema, the zoos and the data sets."""
    file = folder / f"{name}.yaml"
    document = read_yaml(file, "study")
    check("study", document, str(file))
    where = str(file)
    if isinstance(document["classes"], str):
        document = {**document, "classes": read_classes(document["classes"], f"{where}: classes")}
    _dataset(document["source"]["dataset"], datasets, f"{where}: source")
    pairs = {**PAIR_DEFAULTS, "n_pairs": document["pairs"]["max_pairs"], **document["pairs"]}
    if pairs["n_pairs"] > pairs["max_pairs"]:
        raise UserError(
            f"{where}: pairs.n_pairs {pairs['n_pairs']} is more than pairs.max_pairs {pairs['max_pairs']}"
        )
    for count in pairs["n_pairs_sweep"]:
        if count > pairs["max_pairs"]:
            raise UserError(
                f"{where}: pairs.n_pairs_sweep {count} is more than pairs.max_pairs {pairs['max_pairs']}"
            )
    pairs["split"] = [pairs["split"]] if isinstance(pairs["split"], str) else pairs["split"]
    if document["calibration"]["split"] in pairs["split"]:
        raise UserError(
            f"{where}: calibration.split and pairs.split are both "
            f"'{document['calibration']['split']}': calibration images must be disjoint from the "
            "pool"
        )
    for analysis in document.get("analyses", []):
        if analysis not in ANALYSES:
            known = suggest(analysis, ANALYSES)
            raise UserError(f"{where}: unknown analysis '{analysis}': {known}")
    metrics = _metrics(document, where)
    delta = document.get("statistics", {}).get("delta")
    for outcome in delta if isinstance(delta, dict) else ():
        names = ["mean", *(document.get("targets") or {})]
        if outcome.partition("/")[0] not in names:
            raise UserError(
                f"{where}: statistics.delta: unknown outcome '{outcome}': {suggest(outcome, names)}"
            )
    models, unavailable = _models(name, document, zoo, allow_code)
    views = ["source", *(["id"] if "id" in document else []), *(document.get("targets") or {})]
    for key, model in models.items():
        if model.precomputed:
            _given(model, views, f"{where}: model '{key}': load")
        for part in ("train", "val") if model.trainer in ("finetune", "probe") else ("train",):
            if model.trainer and part not in document["source"]:
                raise UserError(f"{where}: source.{part} is missing, and model '{key}' is trained")
        for dataset in model.contamination:
            _dataset(dataset, datasets, f"{where}: model '{key}': contamination")
    notice = document.get("notice") or datasets[document["source"]["dataset"]].notice
    return Study(
        name=name,
        title=document["title"],
        notice=notice,
        task=document["task"],
        classes=list(document["classes"]),
        source=_sorted(document["source"]),
        preprocessing=_sorted(document["preprocessing"]),
        pairs=_sorted(pairs),
        calibration=_sorted({**CALIBRATION_DEFAULTS, **document["calibration"]}),
        id=_sorted(document["id"]) if "id" in document else None,
        targets=_targets(where, document, datasets),
        models=models,
        unavailable=_sorted(unavailable),
        statistics=_sorted({**STATISTICS_DEFAULTS, **document.get("statistics", {})}),
        analyses=list(document.get("analyses", [])),
        metrics=metrics,
        extra_outputs=_sorted({**EXTRA_OUTPUT_DEFAULTS, **document.get("extra_outputs", {})}),
    )


def _root(key: str, entry: Mapping[str, Any], data: str) -> str:
    """The folder of a data set: its entry's, the environment's, or its own under ``data``."""
    variable = f"STAMP_{re.sub('[^A-Z0-9]', '_', key.upper())}_ROOT"
    return entry.get("root") or os.environ.get(variable) or f"{data}/{key}"


def _options(options: Mapping[str, Any], roots: Mapping[str, str]) -> dict[str, Any]:
    """Options in which ``{name}`` stands for the folder of another data set."""
    return {
        key: roots.get(value[1:-1], value) if isinstance(value, str) and value[:1] == "{" else value
        for key, value in options.items()
    }


def _files(key: str, entry: Mapping[str, Any], file: Path) -> dict[str, dict[str, Any]]:
    """What is downloaded for a data set, by name."""
    found: dict[str, dict[str, Any]] = {}
    for each in entry.get("files", []):
        if each["name"] in found:
            raise UserError(f"{file}: {key}: files: '{each['name']}' stands twice")
        if not re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)*", each["name"]):
            raise UserError(f"{file}: {key}: files: '{each['name']}' is no plain file name")
        found[each["name"]] = _sorted(each)
    for url in [each["url"] for each in found.values()] + [entry.get("images_url", "")]:
        if "@" in url.partition("://")[2].partition("/")[0]:
            raise UserError(f"{file}: {key}: an address may not hold a name or a password")
    return found


def read_datasets(file: Path, data: str = "data") -> dict[str, Dataset]:
    """The data sets' file, checked."""
    entries = read_yaml(file, "data sets' file") or {}
    check("datasets", entries, str(file))
    adapters = [path.stem for path in ADAPTERS.glob("*.py") if path.stem != "__init__"]
    for key, entry in entries.items():
        if entry["adapter"] not in adapters:
            known = suggest(entry["adapter"], adapters)
            raise UserError(f"{file}: {key}: unknown adapter '{entry['adapter']}': {known}")
        if "relabels" in entry:
            _dataset(entry["relabels"], entries, f"{file}: {key}: relabels")
    roots = {key: _root(key, entry, data) for key, entry in entries.items()}
    return {
        key: Dataset(
            key=key,
            adapter=entry["adapter"],
            access=entry["access"],
            notice=entry.get("notice", ""),
            options=_sorted(_options(entry.get("options", {}), roots)),
            root=roots[key],
            files=_files(key, entry, file),
            images_url=entry.get("images_url"),
            download=entry.get("download", entry["access"] == "open"),
            border=entry.get("border", 0),
            relabels=entry.get("relabels"),
        )
        for key, entry in entries.items()
    }


def load(document: Mapping[str, Any], file: str = CONFIG) -> Plan:
    """The plan of a configuration; the first mistake in any file is raised."""
    check("config", dict(document), file)
    folders = {**FOLDERS, **document.get("folders", {})}
    results = document.get("results", "results").rstrip("/")
    data = document.get("data", "data").rstrip("/")
    datasets = read_datasets(Path(folders["datasets"]), data)
    studies = {}
    for name in document["studies"]:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name) or name == "datasets":
            raise UserError(f"{file}: studies: '{name}' can't be the name of a study")
        where = (Path(folders["studies"]), Path(folders["zoo"]), datasets)
        studies[name] = read_study(name, *where, document.get("allow_code", False))
    return Plan(
        seed=document["seed"],
        device=document.get("device", "auto"),
        threads=document.get("threads", 1),
        results=results,
        studies=studies,
        datasets=datasets,
        limits=document.get("limits", {}),
    )


def read_plan(studies: Sequence[str] | None = None, **changes: Any) -> Plan:
    """The plan of the project in the current folder; ``studies`` may be others than its own.

    ``changes`` override keys of ``config.yaml``, as ``--config`` does in a run.
    """
    document = read_yaml(Path(CONFIG), "configuration")
    check("config", document, CONFIG)
    return load({**document, **({"studies": list(studies)} if studies else {}), **changes}, CONFIG)
