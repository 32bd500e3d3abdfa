"""A study: one experiment with every default filled in, and what its rules ask of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stamp.config import class_lists, view_names
from stamp.config.analyses import ANALYSES
from stamp.config.datasets import Dataset, check_known
from stamp.config.documents import parsed, plain, read_yaml
from stamp.config.extra_outputs import OF_TARGETS, in_order
from stamp.config.study_file import (
    CalibrationSettings,
    ExtraOutputSettings,
    IdSettings,
    PairSettings,
    SourceSettings,
    StatisticsSettings,
    StudyFile,
    TargetSettings,
)
from stamp.config.zoo import Model, filled, model_of, read_zoo
from stamp.core.errors import UserError, suggest

if TYPE_CHECKING:
    from stamp.config.metrics import Metric


def known_metrics() -> Sequence[Metric]:
    """The registry of metrics, imported only where a study is read: it brings polars."""
    from stamp.config.metrics import METRICS

    return METRICS


@dataclass(frozen=True, slots=True)
class Study:
    """One experiment with every default filled in."""

    name: str
    task: str
    classes: list[str]
    source: SourceSettings
    pairs: PairSettings
    calibration: CalibrationSettings
    statistics: StatisticsSettings = field(default_factory=StatisticsSettings)
    extra_outputs: ExtraOutputSettings = field(default_factory=ExtraOutputSettings)
    id: IdSettings | None = None
    targets: dict[str, TargetSettings] = field(default_factory=dict)
    relabelled: list[str] = field(default_factory=list)  # targets of the source's own images
    preprocessing: dict[str, Any] = field(default_factory=dict)
    models: dict[str, Model] = field(default_factory=dict)
    unavailable: dict[str, Any] = field(default_factory=dict)
    analyses: list[str] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)
    title: str = ""
    notice: str = ""

    # --- images ----------------------------------------------------------------------------------

    @property
    def source_images(self) -> dict[str, Any]:
        """The source's data set and domains."""
        return {"datasets": [self.source.dataset], "domains": self.source.domains}

    def view(self, name: str) -> dict[str, Any]:
        """Which images a view holds, as plain values: data sets, domains, split."""
        if name == view_names.TRAIN:
            return {**self.source_images, "split": self.source.train}
        if name == view_names.VAL:
            return {**self.source_images, "split": self.source.val}
        if name in (view_names.SOURCE, view_names.ID):
            return {**self.source_images, "split": self.id.split if self.id else None}
        target = self.targets[name]
        return {"datasets": target.dataset, "domains": target.domains, "split": target.split}

    @property
    def cached_targets(self) -> list[str]:
        """The targets whose logits are kept; of streamed ones there are predictions only."""
        return [key for key, target in self.targets.items() if not target.streamed]

    @property
    def streamed_targets(self) -> list[str]:
        """The targets of which there are predictions only."""
        return [key for key, target in self.targets.items() if target.streamed]

    def is_streamed(self, view: str) -> bool:
        """Whether a view is a target that is streamed."""
        return view in self.streamed_targets

    @property
    def source_views(self) -> list[str]:
        """The views of the source that models are evaluated on."""
        return [view_names.SOURCE, *([view_names.ID] if self.id else [])]

    @property
    def forwarded_views(self) -> list[str]:
        """The views that logits are kept for: the source's, and targets that are not streamed."""
        return [*self.source_views, *self.cached_targets]

    @property
    def forwarded(self) -> list[list[str]]:
        """Every model with every view that its logits are kept for."""
        return [[model, view] for model in self.models for view in self.forwarded_views]

    @property
    def outcome_views(self) -> list[str]:
        """What models are evaluated on: the source and every target."""
        return [view_names.SOURCE, *self.targets]

    def evaluated_views(self, view: str) -> list[str]:
        """The views that an evaluation reads; the source's own labels may come from two."""
        return self.source_views if view == view_names.SOURCE else [view]

    def evaluated_split(self, view: str) -> str | None:
        """The split of the source that an evaluation is restricted to."""
        return self.id.split if view == view_names.SOURCE and self.id else None

    # --- classes ---------------------------------------------------------------------------------

    def classes_of(self, view: str) -> list[str]:
        """The classes that a view may be labeled for: the study's, and those a target merges."""
        return [*self.classes, *self.merged_classes(view)]

    def merged_classes(self, view: str) -> dict[str, list[str]]:
        """The classes of a target that are several of the study's in one."""
        return self.targets[view].merge if view in self.targets else {}

    def labeled_classes(self, view: str) -> dict[str, list[str]]:
        """The classes that each domain of a target is labeled for, where those are not all."""
        return self.targets[view].classes if view in self.targets else {}

    def classes_among(self, view: str) -> list[str] | str | None:
        """The classes among which a target's predictions are taken: a list, `labeled`, or none."""
        name = self.targets[view].logits if view in self.targets else None
        return name if name in (None, "labeled") else class_lists.read(name)

    def class_subsets(self, view: str) -> dict[str, list[str]]:
        """The lists of classes, by target, that the source is evaluated on too."""
        if view != view_names.SOURCE:
            return {}
        found = {key: self.classes_among(key) for key in self.targets}
        return {key: among for key, among in found.items() if isinstance(among, list)}

    @property
    def scored_classes(self) -> dict[str, dict[str, Any]]:
        """The classes of each target: those labeled in each domain, those predicted among."""
        return {
            key: {"classes": target.classes, "among": self.classes_among(key)}
            for key, target in self.targets.items()
        }

    @property
    def matched_targets(self) -> list[str]:
        """The targets for which models are also scored over just their labeled classes."""
        return [key for key, target in self.targets.items() if target.classes]

    # --- models ----------------------------------------------------------------------------------

    def trained_by(self, rule: str) -> dict[str, Model]:
        """The models that a rule trains."""
        return {key: model for key, model in self.models.items() if model.trainer == rule}

    @property
    def model_keys(self) -> list[str]:
        """The models by their keys."""
        return list(self.models)

    @property
    def finetuned(self) -> dict[str, str]:
        """The labels of the models that are fine-tuned."""
        return {key: model.label for key, model in self.trained_by("finetune").items()}

    @property
    def backbones(self) -> dict[str, Model]:
        """One probe for each frozen backbone, by the backbone's key."""
        return {model.backbone_key: model for model in self.trained_by("probe").values()}

    @property
    def contaminated(self) -> dict[str, list[str]]:
        """The targets whose data sets a model was trained or selected on, where there are any."""
        found = {
            key: [
                name
                for name, target in self.targets.items()
                if set(target.dataset) & set(model.contamination)
            ]
            for key, model in self.models.items()
        }
        return {key: names for key, names in found.items() if names}

    # --- extra inference outputs -----------------------------------------------------------------

    @property
    def metric_kinds(self) -> list[str]:
        """The extra inference outputs on the source that the study's metrics need."""
        return [kind for kind in self._of_metrics() if kind not in OF_TARGETS]

    @property
    def target_kinds(self) -> list[str]:
        """The extra inference outputs on targets that the study's metrics need.

        None where every target is streamed: no pixels of it are kept.
        """
        if not self.cached_targets:
            return []
        return [kind for kind in self._of_metrics() if kind in OF_TARGETS]

    @property
    def kinds(self) -> list[str]:
        """The extra inference outputs on the source that the study's metrics and analyses need."""
        analyses = [kind for name in self.analyses for kind in ANALYSES[name].extra_outputs]
        return in_order([*self.metric_kinds, *analyses])

    @property
    def scales_extra_outputs(self) -> bool:
        """Whether some of them are of outputs at the fitted temperature."""
        return "jacobian" in self.kinds and self.calibration.scale

    def _of_metrics(self) -> list[str]:
        """The extra inference outputs that the study's metrics need, if they are compared."""
        compares = any("metrics" in ANALYSES[name].reads for name in self.analyses)
        compared = self.metrics if compares else []
        return in_order(
            kind for one in known_metrics() if one.name in compared for kind in one.extra_outputs
        )

    # --- statistics, tables, figures -------------------------------------------------------------

    @property
    def agreement_on_the_line(self) -> bool:
        """Whether any of the study's metrics needs all models at once."""
        return any(one.name in self.metrics and not one.of_one_model for one in known_metrics())

    @property
    def outcomes(self) -> dict[str, str]:
        """What of each target is correlated with the score."""
        return {key: target.outcomes for key, target in self.targets.items()}

    @property
    def test_settings(self) -> dict[str, Any]:
        """How correlations are tested."""
        names = ("permutations", "resamples", "level")
        return {name: getattr(self.statistics, name) for name in names}

    def analysis_options(self, analysis: str) -> dict[str, Any]:
        """The settings of the study that only this analysis takes."""
        return {key: getattr(self.statistics, key) for key in ANALYSES[analysis].options}

    @property
    def described_models(self) -> dict[str, dict[str, str]]:
        """What figures and tables say of each model; nothing that a number depends on."""
        return {key: model.described for key, model in self.models.items()}

    @property
    def texts(self) -> dict[str, Any]:
        """The words around the study's figures and tables."""
        targets = self.targets.items()
        return {
            **self.headings,
            "level": self.statistics.level,
            "targets": {key: target.title or key for key, target in targets},
            "outcomes": self.outcomes,
            "matched": [key for key, target in targets if target.score == "matched"],
            "relabelled": self.relabelled,
        }

    @property
    def headings(self) -> dict[str, str]:
        """What every figure says of the study."""
        return {"title": self.title, "notice": self.notice, "task": self.task}


@dataclass(frozen=True, slots=True)
class StudyFiles:
    """Where studies and zoos are, the data sets they may name, and whether a model may be code."""

    studies: Path
    zoo: Path
    datasets: Mapping[str, Dataset]
    allow_code: bool = False


def read_study(name: str, files: StudyFiles) -> Study:
    """A study's file, checked against its declaration, the zoos and the data sets."""
    where = str(files.studies / f"{name}.yaml")
    document = read_yaml(files.studies / f"{name}.yaml", "study")
    file = parsed(StudyFile, document, where)
    check_known(file.source.dataset, files.datasets, f"{where}: source")
    _check_pairs(file, where)
    _check_analyses(file, where)
    for key, target in file.targets.items():
        _check_target(key, target, file, files.datasets, where)
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
        pairs=file.pairs,
        calibration=file.calibration,
        id=file.id,
        targets=file.targets,
        relabelled=[
            key
            for key, target in file.targets.items()
            if all(files.datasets[one].relabels == file.source.dataset for one in target.dataset)
        ],
        models=models,
        unavailable=unavailable,
        statistics=file.statistics,
        analyses=file.analyses,
        metrics=_metrics(file, where),
        extra_outputs=file.extra_outputs,
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
    if target.logits and file.task != "multiclass":
        raise UserError(f"{at}.logits: predictions are restricted in multiclass studies only")
    if target.streamed and file.task != "multiclass":
        raise UserError(f"{at}.streamed: only multiclass targets can be streamed")
    if target.score == "matched" and not target.classes:
        raise UserError(f"{at}.score: a matched score needs the target's classes")
    _check_target_classes(target, file.classes, at)


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
    for domain, names in target.classes.items():
        _check_classes(f"{at}.classes.{domain}", names, [*classes, *target.merge])


def _check_classes(where: str, names: Iterable[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise UserError(f"{where}: unknown class '{name}': {suggest(name, known)}")


def _metrics(file: StudyFile, where: str) -> list[str]:
    """The metrics that the study compares STAMP with: those it names, or all that its task has."""
    tasks = {one.name: one.tasks for one in known_metrics()}
    for name in file.metrics or ():
        if name not in tasks:
            raise UserError(f"{where}: metrics: unknown metric '{name}': {suggest(name, tasks)}")
        if file.task not in tasks[name]:
            only = " and ".join(tasks[name])
            raise UserError(f"{where}: metrics: '{name}' is defined for {only} studies only")
    chosen = file.metrics or [name for name in tasks if file.task in tasks[name]]
    return [name for name in tasks if name in chosen]


def _models(
    name: str, file: StudyFile, pixels: Mapping[str, Any], files: StudyFiles
) -> tuple[dict[str, Model], dict[str, Any]]:
    """The models of a study, and what is said of those that can't be scored."""
    found: dict[str, Model] = {}
    reasons: dict[str, str] = {}
    for zoo in file.zoo:
        place = files.zoo / f"{zoo}.yaml"
        for key, entry in read_zoo(place).items():
            if key in found:
                raise UserError(
                    f"{place}: model '{key}' stands in another zoo of study '{name}' too"
                )
            load = entry["load"]
            if "unavailable" in entry:
                reasons[key] = entry["unavailable"]
            elif key in (file.models or [key]):
                load = filled(load, file.task, files.allow_code, f"{place}: {key}.load")
            found[key] = model_of(key, entry, load, pixels)
    chosen = sorted(file.models or found)
    for key in chosen:
        if key not in found:
            raise UserError(f"study '{name}': unknown model '{key}': {suggest(key, found)}")
    models = {key: found[key] for key in chosen if key not in reasons}
    if not models:
        raise UserError(f"study '{name}': its zoo has no model that can be scored")
    listed = {
        key: found[key].described | {"reason": reasons[key]} for key in chosen if key in reasons
    }
    return models, plain(listed)


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
