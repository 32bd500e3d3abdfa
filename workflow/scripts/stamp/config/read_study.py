"""A study read from its file, and checked against the zoos and the data sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stamp.config import view_names
from stamp.config.datasets import Dataset, check_known
from stamp.config.documents import parsed, plain, read_yaml
from stamp.config.labels import class_lists
from stamp.config.registries.analyses import ANALYSES
from stamp.config.registries.metrics import METRICS, Metric
from stamp.config.registries.stress_changes import changes
from stamp.config.study import Study
from stamp.config.study_file import StudyFile, TargetSettings
from stamp.config.zoo import Model, filled, model_of, read_zoo
from stamp.core.errors import UserError, suggest

ROBUSTNESS = "robustness"  # the analysis of stress tests


@dataclass(frozen=True, slots=True)
class StudyFiles:
    """Where studies and zoos are, the data sets they may name, and whether a model may be code."""

    studies: Path
    zoo: Path
    datasets: Mapping[str, Dataset]
    allow_code: bool = False
    may_lack_models: bool = False  # before a zoo is written


def read_study(name: str, files: StudyFiles) -> Study:
    """A study's file, checked against its declaration, the zoos and the data sets."""
    where = str(files.studies / f"{name}.yaml")
    document = read_yaml(files.studies / f"{name}.yaml", "study")
    file = parsed(StudyFile, document, where)
    check_known(file.source.dataset, files.datasets, f"{where}: source")
    _check_pairs(file, where)
    _check_analyses(file, where)
    _check_stress(file, where)
    for key, target in file.targets.items():
        _check_target(key, target, file, files.datasets, where)
    _check_merges(file, where)
    models, unavailable = _models(name, file, document["preprocessing"], files)
    for model in models.values():
        _check_model(model, file, files.datasets, f"{where}: model '{model.key}'")
    return Study(
        name=name,
        title=file.title,
        notice=file.notice or files.datasets[file.source.dataset].notice,
        task=file.task,
        classes=file.classes,
        source=file.source,
        preprocessing=plain(document["preprocessing"]),
        cached_size=file.cached_size,
        pairs=file.pairs,
        estimator=file.estimator,
        calibration=file.calibration,
        id=file.id,
        targets=file.targets,
        relabelled=[
            key
            for key, target in file.targets.items()
            if all(files.datasets[one].relabels == file.source.dataset for one in target.dataset)
        ],
        relabels={key: one.relabels for key, one in files.datasets.items() if one.relabels},
        models=models,
        unavailable=unavailable,
        statistics=file.statistics,
        analyses=_analyses(file),
        metrics=_metrics(file, where),
        extra_outputs=file.extra_outputs,
        stress=file.stress,
        made_images=files.datasets[file.source.dataset].made,
        show_images=file.show_images,
        document=plain(document),
    )


def _check_pairs(file: StudyFile, where: str) -> None:
    pairs, split = file.pairs, file.calibration.split
    numbers = [("n_pairs", pairs.n_pairs), *(("n_pairs_sweep", n) for n in pairs.n_pairs_sweep)]
    for key, number in numbers:
        if number > pairs.max_pairs:
            raise UserError(
                f"{where}: pairs.{key} {number} is more than pairs.max_pairs {pairs.max_pairs}"
            )
    if split in pairs.split:
        raise UserError(
            f"{where}: calibration.split and pairs.split are both '{split}': calibration images "
            "must be disjoint from the pool"
        )


def _check_analyses(file: StudyFile, where: str) -> None:
    for analysis in file.analyses:
        if analysis not in ANALYSES:
            known = suggest(analysis, ANALYSES)
            raise UserError(f"{where}: analyses: unknown analysis '{analysis}': {known}")
    delta, names = file.statistics.delta, ["mean", *file.targets]
    for outcome in delta if isinstance(delta, dict) else ():
        if outcome.partition("/")[0] not in names:
            raise UserError(
                f"{where}: statistics.delta: unknown outcome '{outcome}': {suggest(outcome, names)}"
            )


def _check_stress(file: StudyFile, where: str) -> None:
    if file.stress is None:
        if ROBUSTNESS in file.analyses:
            raise UserError(f"{where}: analyses: '{ROBUSTNESS}' needs the study's 'stress'")
        return
    for name in file.stress.changes:
        if name not in changes():
            known = suggest(name, changes())
            raise UserError(f"{where}: stress.changes: unknown change '{name}': {known}")


def _analyses(file: StudyFile) -> list[str]:
    """The analyses that the study names, and that of its stress tests."""
    asked = file.stress is not None and ROBUSTNESS not in file.analyses
    return [*file.analyses, *([ROBUSTNESS] if asked else [])]


def _check_target(
    key: str,
    target: TargetSettings,
    file: StudyFile,
    datasets: Mapping[str, Dataset],
    where: str,
) -> None:
    if key in view_names.RESERVED:
        raise UserError(f"{where}: targets: '{key}' is a reserved name")
    at = f"{where}: targets.{key}"
    for dataset in target.dataset:
        check_known(dataset, datasets, at)
    borders = {datasets[one].border for one in target.dataset}
    if len(borders) > 1:
        raise UserError(f"{at}: its data sets have different borders: {sorted(borders)}")
    if target.merge and file.task != "multilabel":
        raise UserError(f"{at}.merge: classes are merged in multilabel studies only")
    if target.class_mix and file.task != "multiclass":
        raise UserError(
            f"{at}.class_mix: an AUROC does not depend on how frequent a class is: for multiclass "
            "studies only"
        )
    if target.logits and file.task != "multiclass":
        raise UserError(f"{at}.logits: predictions are restricted in multiclass studies only")
    if target.streamed and file.task != "multiclass":
        raise UserError(f"{at}.streamed: only multiclass targets can be streamed")
    if target.score == "matched" and not target.classes:
        raise UserError(f"{at}.score: a matched score needs the target's classes")
    _check_target_classes(target, file.classes, at)


def _check_merges(file: StudyFile, where: str) -> None:
    """A merged class is the same in every target: the source is evaluated on it too."""
    found: dict[str, tuple[str, list[str]]] = {}
    for key, target in file.targets.items():
        for name, parts in target.merge.items():
            first, others = found.setdefault(name, (key, parts))
            if sorted(others) != sorted(parts):
                raise UserError(
                    f"{where}: targets.{key}.merge: '{name}' has other parts than in '{first}'"
                )


def _check_target_classes(target: TargetSettings, classes: Sequence[str], at: str) -> None:
    for name, parts in target.merge.items():
        _check_classes(f"{at}.merge.{name}", parts, classes)
        if name in classes:
            raise UserError(f"{at}.merge: '{name}' is a class of the study already")
    if target.logits not in (None, "labeled"):
        try:
            among = class_lists.read(target.logits)
        except UserError as mistake:
            raise UserError(f"{at}.logits: {mistake}") from None
        _check_classes(f"{at}.logits", among, classes)
    for domain, mix in target.class_mix.items():
        _check_classes(f"{at}.class_mix.{domain}", mix, classes)
    for domain, names in target.classes.items():
        _check_classes(f"{at}.classes.{domain}", names, [*classes, *target.merge])


def _check_classes(where: str, names: Iterable[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise UserError(f"{where}: unknown class '{name}': {suggest(name, known)}")


def _metrics(file: StudyFile, where: str) -> list[str]:
    """The metrics that the study compares STAMP with: those it names, or all that its task has."""
    known = {one.name: one for one in METRICS}
    optional = {name: one for name, one in known.items() if one.optional}
    _check_metrics(file.metrics or (), known, file, f"{where}: metrics")
    _check_metrics(file.optional_metrics, optional, file, f"{where}: optional_metrics")
    usual = [
        one.name
        for one in METRICS
        if file.task in one.tasks
        and not one.optional
        and (file.stress is not None or not one.of_stress_tests)
    ]
    chosen = {*(file.metrics or usual), *file.optional_metrics}
    chosen |= {part for name in chosen for part in known[name].sum_of}
    return [name for name in known if name in chosen]


def _check_metrics(
    names: Iterable[str], known: Mapping[str, Metric], file: StudyFile, where: str
) -> None:
    for name in names:
        if name not in known:
            raise UserError(f"{where}: unknown metric '{name}': {suggest(name, known)}")
        if file.task not in known[name].tasks:
            only = " and ".join(known[name].tasks)
            raise UserError(f"{where}: '{name}' is defined for {only} studies only")
        if known[name].of_stress_tests and file.stress is None:
            raise UserError(f"{where}: '{name}' needs the study's 'stress'")


def _models(
    name: str, file: StudyFile, pixels: Mapping[str, Any], files: StudyFiles
) -> tuple[dict[str, Model], dict[str, Any]]:
    """The models of a study, and what is said of those that can't be scored."""
    found: dict[str, Model] = {}
    reasons: dict[str, str] = {}
    for zoo in file.zoo:
        place = files.zoo / f"{zoo}.yaml"
        if files.may_lack_models and not place.is_file():
            continue
        for key, entry in read_zoo(place).items():
            if key in found:
                raise UserError(
                    f"{place}: model '{key}' stands in another zoo of study '{name}' too"
                )
            load = entry["load"]
            if reason := _left_out(key, entry, file):
                reasons[key] = reason
            elif key in (file.models or [key]):
                load = filled(load, file.task, files.allow_code, f"{place}: {key}.load")
            found[key] = model_of(key, entry, load, pixels)
    chosen = sorted(file.models or found)
    for key in chosen:
        if key not in found:
            raise UserError(f"study '{name}': unknown model '{key}': {suggest(key, found)}")
    _check_selections(file.statistics.selections, found, f"study '{name}': statistics.selections")
    models = {key: found[key] for key in chosen if key not in reasons}
    if not models and not files.may_lack_models:
        raise UserError(
            f"study '{name}': its zoo has no model that can be scored: add-model adds one"
        )
    listed = {
        key: found[key].described | {"reason": reasons[key]} for key in chosen if key in reasons
    }
    return models, plain(listed)


def _left_out(key: str, entry: Mapping[str, Any], file: StudyFile) -> str | None:
    """Why a model of the zoo is listed and not run; None where it is run."""
    if "unavailable" in entry:
        return entry["unavailable"]
    if "optional" not in entry or file.optional_models or key in (file.models or ()):
        return None
    return f"{entry['optional']} (`optional_models: true` in the study's file scores it)"


def _check_selections(
    selections: Mapping[str, Sequence[str]], zoo: Mapping[str, Model], where: str
) -> None:
    backbones = {model.backbone for model in zoo.values()}
    for title, keys in selections.items():
        if title in backbones:
            raise UserError(f"{where}: '{title}' is a backbone of the zoo: give it another name")
        for key in keys:
            if key not in zoo:
                raise UserError(f"{where}.{title}: unknown model '{key}': {suggest(key, zoo)}")


def _check_model(
    model: Model, file: StudyFile, datasets: Mapping[str, Dataset], where: str
) -> None:
    if model.precomputed:
        views = [view_names.SOURCE, *([view_names.ID] if file.id else []), *file.targets]
        _check_logits_files(model.load, views, f"{where}: load")
    for part in ("train", "val") if model.trainer in ("finetune", "probe") else ("train",):
        if model.trainer and getattr(file.source, part) is None:
            raise UserError(f"{where} is trained, and source.{part} is missing")
    for dataset in model.contamination:
        check_known(dataset, datasets, f"{where}: contamination")


def _check_logits_files(load: Mapping[str, Any], views: Iterable[str], where: str) -> None:
    """Refuse a model of precomputed logits that lacks those of a view."""
    if ("file" in load) == ("files" in load):
        raise UserError(f"{where}: one of file (for all views) and files (by view) is needed")
    for view in views if "files" in load else ():
        if view not in load["files"]:
            raise UserError(f"{where}.files: none is given for the view '{view}'")
