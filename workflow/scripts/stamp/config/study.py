"""A study: one experiment with every default filled in, and what its rules ask of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from stamp.config import view_names
from stamp.config.labels import class_lists
from stamp.config.preprocessing import Preprocessing, merged
from stamp.config.registries.analyses import ANALYSES
from stamp.config.registries.extra_outputs import OF_TARGETS, in_order
from stamp.config.registries.metrics import METRICS, Metric
from stamp.config.study_file import (
    CalibrationSettings,
    ExtraOutputSettings,
    IdSettings,
    PairSettings,
    SourceSettings,
    StatisticsSettings,
    StressSettings,
    TargetSettings,
)
from stamp.config.zoo import Model

NOT_SAID = "not said"


@dataclass(frozen=True, slots=True)
class Study:
    """One experiment with every default filled in."""

    name: str
    task: str
    classes: list[str]
    source: SourceSettings
    pairs: PairSettings
    calibration: CalibrationSettings
    estimator: str = "exact"
    statistics: StatisticsSettings = field(default_factory=StatisticsSettings)
    extra_outputs: ExtraOutputSettings = field(default_factory=ExtraOutputSettings)
    stress: StressSettings | None = None
    id: IdSettings | None = None
    targets: dict[str, TargetSettings] = field(default_factory=dict)
    relabelled: list[str] = field(default_factory=list)  # targets of the source's own images
    relabels: dict[str, str] = field(default_factory=dict)  # data sets with the images of others
    preprocessing: dict[str, Any] = field(default_factory=dict)
    cached_size: int = 256  # the largest side that has a pixel cache
    models: dict[str, Model] = field(default_factory=dict)
    unavailable: dict[str, Any] = field(default_factory=dict)
    analyses: list[str] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)
    title: str = ""
    notice: str = ""
    made_images: bool = False  # whether a rule makes the source's images
    show_images: bool | None = None
    document: dict[str, Any] = field(default_factory=dict)  # the study's file as it is written

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

    def keeps_pixels(self, view: str, how: Preprocessing) -> bool:
        """Whether a view's images are kept decoded on disk for the models of a preprocessing.

        It depends on nothing but the two and the study's own settings: a model more that shares
        the preprocessing must not change how others get their pixels.
        """
        if view in (view_names.TRAIN, view_names.VAL):
            return True  # read again in every epoch
        own = merged(self.preprocessing) if self.preprocessing else None
        return how.size <= self.cached_size or how == own

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

    def training_views(self, model: Model) -> list[str]:
        """The views that a rule trains a model on, if one does."""
        both = [view_names.TRAIN, view_names.VAL]
        return {"train": both[:1], "finetune": both, "probe": both}.get(model.trainer or "", [])

    @property
    def cached_pixels(self) -> list[tuple[str, Preprocessing]]:
        """Every pixel cache that is kept: a view, and a preprocessing of models that see it."""
        found = {
            (view, model.preprocessing.key): (view, model.preprocessing)
            for model in self.models.values()
            if not model.precomputed
            for view in (*self.forwarded_views, *self.training_views(model))
            if self.keeps_pixels(view, model.preprocessing)
        }
        return list(found.values())

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

    def evaluated_merges(self, view: str) -> dict[str, list[str]]:
        """The merged classes that an evaluation has: a target's own; the source's are of all."""
        views = self.targets if view == view_names.SOURCE else [view]
        return {name: parts for key in views for name, parts in self.merged_classes(key).items()}

    def labeled_classes(self, view: str) -> dict[str, list[str]]:
        """The classes that each domain of a target is labeled for, where those are not all."""
        return self.targets[view].classes if view in self.targets else {}

    def classes_among(self, view: str) -> list[str] | str | None:
        """The classes among which a target's predictions are taken: a list, `labeled`, or none."""
        name = self.targets[view].logits if view in self.targets else None
        return name if name in (None, "labeled") else class_lists.read(name)

    def class_subsets(self, view: str) -> dict[str, list[str] | str]:
        """The classes, by target, that the source is evaluated on too: a list, or `labeled`."""
        if view != view_names.SOURCE:
            return {}
        found = {key: self.classes_among(key) for key in self.targets}
        return {key: among for key, among in found.items() if among is not None}

    def labeled_targets(self, view: str) -> list[str]:
        """The targets whose images' labels say which classes the source is evaluated on too."""
        return [key for key, among in self.class_subsets(view).items() if among == "labeled"]

    @property
    def scored_classes(self) -> dict[str, dict[str, Any]]:
        """The classes of each target: labeled in each domain, merged, predicted among."""
        return {
            key: {
                "classes": target.classes,
                "merge": target.merge,
                "among": self.classes_among(key),
            }
            for key, target in self.targets.items()
        }

    @property
    def class_mix(self) -> dict[str, dict[str, dict[str, float]]]:
        """The expected shares of the classes, by target and domain, where the study says them."""
        return {key: target.class_mix for key, target in self.targets.items() if target.class_mix}

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

    def streamed_together(self, preprocessing: str) -> dict[str, Model]:
        """The models that share the decoded images of a streamed target.

        Not those that a rule trains: each of them would wait for all the others' training.
        """
        return {
            key: model
            for key, model in self.models.items()
            if model.streams_with_others and model.streamed_preprocessing.key == preprocessing
        }

    @property
    def finetuned(self) -> dict[str, str]:
        """The labels of the models that are fine-tuned."""
        return {key: model.label for key, model in self.trained_by("finetune").items()}

    @property
    def backbones(self) -> dict[str, Model]:
        """One probe for each frozen backbone, by the backbone's key."""
        return {model.backbone_key: model for model in self.trained_by("probe").values()}

    def trained_splits(self, key: str) -> tuple[str, ...] | None:
        """The splits of the source that a model was trained on; None where nobody said.

        What the workflow trains itself, it knows.
        """
        model = self.models[key]
        own = (self.source.train,) if model.trainer and self.source.train else ()
        if model.trained_on is None:
            return own or None
        return tuple(dict.fromkeys((*model.trained_on, *own)))

    def leaks(self, key: str) -> bool:
        """Whether a model was trained on a split that pairs come from."""
        return not set(self.pairs.split).isdisjoint(self.trained_splits(key) or ())

    @property
    def trained_on(self) -> dict[str, list[str] | None]:
        """The splits that each model was trained on, as plain values."""
        found = {key: self.trained_splits(key) for key in self.models}
        return {key: None if splits is None else list(splits) for key, splits in found.items()}

    @property
    def contaminated(self) -> dict[str, list[str]]:
        """The targets whose data sets a model was trained or selected on, where there are any.

        Other labels do not make other images: what a data set relabels counts as well.
        """
        seen = {
            name: {*target.dataset, *(self.relabels.get(one) for one in target.dataset)}
            for name, target in self.targets.items()
        }
        found = {
            key: [name for name in self.targets if seen[name] & set(model.contamination)]
            for key, model in self.models.items()
        }
        return {key: names for key, names in found.items() if names}

    @property
    def for_reference(self) -> dict[str, str]:
        """The models that are shown but not counted, with the reason."""
        return {key: model.reference for key, model in self.models.items() if model.reference}

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

    @property
    def stress_changes(self) -> list[str]:
        """The changes of the study's stress tests."""
        return self.stress.changes if self.stress else []

    @property
    def metric_stress_changes(self) -> list[str]:
        """Those that the study's metrics need, if they are compared."""
        wanted = any(one.of_stress_tests for one in self._compared())
        return self.stress_changes if wanted else []

    def _of_metrics(self) -> list[str]:
        """The extra inference outputs that the study's metrics need, if they are compared."""
        return in_order(kind for one in self._compared() for kind in one.extra_outputs)

    def _compared(self) -> list[Metric]:
        """The metrics that an analysis of the study compares."""
        compares = any("metrics" in ANALYSES[name].reads for name in self.analyses)
        return [one for one in METRICS if compares and one.name in self.metrics]

    # --- statistics, tables, figures -------------------------------------------------------------

    @property
    def agreement_on_the_line(self) -> bool:
        """Whether any of the study's metrics needs all models at once."""
        return self._has_metric_of("agreement_on_the_line")

    @property
    def projection_norm(self) -> bool:
        """Whether networks are trained on their answers to the targets."""
        compared = any("metrics" in ANALYSES[name].reads for name in self.analyses)
        return compared and bool(self.cached_targets) and self._has_metric_of("projection_norm")

    def _has_metric_of(self, rule: str) -> bool:
        return any(one.name in self.metrics and one.rule == rule for one in METRICS)

    @property
    def metric_packages(self) -> dict[str, str]:
        """The versions of the packages that single metrics of the study need.

        A metric whose package is missing is not there; it is made once the package is.
        """
        wanted = [one.package for one in METRICS if one.name in self.metrics and one.package]
        return {package: _installed(package) for package in wanted}

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

    def profile_options(self, profile: str) -> dict[str, Any]:
        """The settings of the study that only the profile of stress tests takes."""
        if not ANALYSES[profile].stress_tests:
            return {}
        return {"minimum": self.statistics.minimum, "scored": self.scored_classes}

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
            "pretraining": self.pretraining,
        }

    @property
    def pretraining(self) -> dict[str, str]:
        """What each model was pretrained on, where that is not the same for all."""
        said = {key: model.pretraining or NOT_SAID for key, model in self.models.items()}
        return said if len(set(said.values())) > 1 else {}

    @property
    def headings(self) -> dict[str, str]:
        """What every figure says of the study."""
        return {"title": self.title, "notice": self.notice, "task": self.task}

    @property
    def shows_images(self) -> bool:
        """Whether the page may hold images: anybody's own ones only where the study says so."""
        return self.made_images if self.show_images is None else self.show_images

    @property
    def trained(self) -> list[str]:
        """The models that a rule trains and keeps a record of."""
        return [key for key, model in self.models.items() if model.trainer]

    @property
    def page_facts(self) -> dict[str, Any]:
        """What the page says of how the study was made."""
        return {
            "study": self.name,
            "texts": self.texts,
            "configuration": self.document,
            "made_images": self.made_images,
            "frozen": [
                key
                for key, model in self.trained_by("train").items()
                if model.load.get("backbone", "supervised") != "supervised"
            ],
            "scoring": {
                "data": self.name,
                "task": self.task,
                "classes": self.classes,
                "semantic": self.pairs.semantic,
                "split": self.pairs.split,
                "level": self.statistics.level,
                "scaled": self.calibration.scale,
            },
        }


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
