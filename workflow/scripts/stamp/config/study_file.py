"""A study's file: every key with its type, default and limits."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic import model_validator as validator

from stamp.config.documents import (
    ByKey,
    Distinct,
    Name,
    Names,
    OneOrMore,
    Section,
    Sentence,
    by_key,
)
from stamp.config.labels import class_lists
from stamp.config.load_blocks import Count, Positive, PreprocessingBlock
from stamp.core.errors import UserError

Pairs = Annotated[int, Field(ge=2)]
Share = Annotated[float, Field(gt=0, lt=1)]
PairKind = Literal["temporal", "labeled", "changed", "class"]
ExclusionRule = Literal["temperature", "chance", "none"]
Task = Literal["multilabel", "multiclass"]
Estimator = Literal["exact", "sampled"]
TargetKey = Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]*$")]
TwoClasses = Annotated[Distinct[Name], Field(min_length=2)]


def _class_list(given: Any) -> Any:
    """The classes of a list that is given by its name."""
    if not isinstance(given, str):
        return given
    try:
        return class_lists.read(given)
    except UserError as mistake:
        raise ValueError(str(mistake)) from None


def _threshold(given: Any) -> Any:
    """A number, or one number per outcome."""
    values = given.values() if isinstance(given, dict) else [given]
    if any(isinstance(one, bool) or not isinstance(one, int | float) for one in values):
        raise ValueError("a number is expected, or one number per outcome")
    return dict(sorted(given.items())) if isinstance(given, dict) else given


Classes = Annotated[
    TwoClasses, BeforeValidator(_class_list, json_schema_input_type=TwoClasses | str)
]
Threshold = Annotated[
    Any,
    AfterValidator(_threshold),
    WithJsonSchema({"type": ["number", "object"], "additionalProperties": {"type": "number"}}),
]


class SourceSettings(Section):
    """The images that the models know."""

    dataset: str = Field(description="the data set")
    domains: Names | None = Field(None, description="only these of its domains")
    train: str | None = Field(None, description="split that models trained by a rule learn from")
    val: str | None = Field(
        None,
        description="split by which fine-tuning chooses its best epoch and a probe its penalty",
    )


class PairSettings(Section):
    """Which pairs of source images a score is taken from."""

    split: OneOrMore = Field(
        description="split of the source that pairs are drawn from, or a list of splits; models "
        "should not have been trained on it"
    )
    semantic: PairKind = Field(
        description="what the headline score uses: `temporal` (consecutive images of a group), "
        "`labeled` (those with identical labels), `changed` (the others), `class` (two images of "
        "one class, by their labels, and of different groups such as patients; in multilabel "
        "studies a class is a combination of labels)"
    )
    also: Annotated[dict[PairKind, Pairs], AfterValidator(by_key)] = Field(
        {}, description="further kinds that are scored, each with its number of pairs"
    )
    mode: Literal["all_consecutive", "one_per_group"] = Field(
        "all_consecutive",
        description="`all_consecutive` pairs of a group, or `one_per_group` (its first pair)",
    )
    order: Literal["order", "image"] = Field(
        "order",
        description="consecutive by the index's `order` column, or by `image` id (file name)",
    )
    same: Distinct[str] = Field(
        [],
        description="columns of the index, such as `position`, in which both images of a semantic "
        "pair must agree",
    )
    random: Literal["different_group", "iid"] = Field(
        "different_group",
        description="random pairs from two groups (`different_group`; beside class pairs from two "
        "classes and two groups), or drawn independently (`iid`)",
    )
    pool: Literal["reuse", "fresh"] = Field(
        "reuse",
        description="random pairs `reuse` the images of the semantic pairs, or are drawn `fresh` "
        "from the split",
    )
    max_pairs: Pairs = Field(
        description="how many pairs are drawn, once, in a fixed order; their images are forwarded"
    )
    n_pairs: Pairs = Field(
        0,
        description="how many of them, from the first, the sampled score uses (N); changing it "
        "forwards nothing",
        json_schema_extra={"absent": "`max_pairs`"},
    )
    n_pairs_sweep: Distinct[Pairs] = Field(
        [],
        description="further numbers of pairs at which the sampled score is taken too, from the "
        "same forward passes",
    )

    @validator(mode="before")
    @classmethod
    def _all_pairs_unless_fewer_are_asked(cls, given: Any) -> Any:
        if isinstance(given, dict) and "max_pairs" in given:
            return {"n_pairs": given["max_pairs"], **given}
        return given

    @property
    def drawn(self) -> dict[str, Any]:
        """What decides which pairs are drawn, as plain values: not how many of them are used."""
        kept = self.settings
        return {key: kept[key] for key in kept if key not in ("n_pairs", "n_pairs_sweep")}

    @property
    def scored_numbers(self) -> list[int]:
        """The numbers of pairs that a model is also scored at: the sweep's, and all pairs."""
        return sorted({*self.n_pairs_sweep, self.max_pairs}) if self.n_pairs_sweep else []


class CalibrationSettings(Section):
    """Held-out images that the temperature is fitted on, and which models are excluded by them."""

    split: str = Field(description="split of the calibration images, none of those of the pairs")
    n_images: Count = Field(description="how many calibration images are taken")
    scale: bool = Field(
        False,
        description="score with the fitted temperature (STAMP-TS) or with T = 1; the other is "
        "reported beside it",
    )
    exclude: ExclusionRule = Field(
        "none",
        description="the study's declared rule: `temperature` (T above `temperature_above`), "
        "`chance` (near chance on the calibration images: see `docs/method.md`) or `none`",
    )
    temperature_above: Positive = Field(3.0, description="threshold of the rule `temperature`")
    chance_factor: Positive = Field(
        5.0,
        description="of the rule `chance` in multiclass studies: the accuracy asked for is this "
        "times 1/C, but never more than half way from 1/C to 1; and always more than the "
        "majority-class rate",
    )
    chance_auroc: Annotated[float, Field(ge=0, le=1)] = Field(
        0.55,
        description="of the rule `chance` in multilabel studies: the macro-AUROC asked for",
    )

    @property
    def thresholds(self) -> dict[str, float]:
        """The thresholds of the exclusion rules."""
        names = ("temperature_above", "chance_factor", "chance_auroc")
        return {name: getattr(self, name) for name in names}


class IdSettings(Section):
    """Labeled source images for the source metric."""

    split: str = Field(description="their split; images that the pairs use are not forwarded again")


class TargetSettings(Section):
    """Labeled images that play "after deployment"."""

    dataset: OneOrMore = Field(
        description="a data set, or a list of several that are evaluated together"
    )
    title: Name | None = Field(
        None, description="what figures call it", json_schema_extra={"absent": "its name"}
    )
    domains: Names | None = Field(None, description="only images of these domains")
    split: str | None = Field(None, description="only images of this split")
    outcomes: Literal["domain", "kind", "whole"] = Field(
        "domain",
        description="what is correlated with the score: each `domain`, each `kind` of domain "
        "(`blur-1` to `blur-5` are `blur`), or the target as a `whole`",
    )
    classes: ByKey[Names] = Field(
        {},
        description="per domain (or `all`), the classes that it is labeled for where that is not "
        "every class; the score over just these classes is then reported as `stamp_matched`",
        json_schema_extra={"absent": "all classes"},
    )
    class_mix: ByKey[ByKey[Positive]] = Field(
        {},
        description="per domain (or `all`), the expected share of each class; numbers in their "
        "proportion do. The class-matched source metric is weighted to it and not to the "
        "target's labels: for a target without labels, or to use none of them. Multiclass only",
        json_schema_extra={"absent": "the shares of the target's labels"},
    )
    merge: ByKey[TwoClasses] = Field(
        {},
        description="classes of the target that are several of the study's in one "
        "(`Nodule/Mass: [Mass, Nodule]`): a model's output for it is the largest of theirs. "
        "Multilabel only",
    )
    logits: str | None = Field(
        None,
        description="the classes among which the prediction is taken: the name of a list, or "
        "`labeled` for those that its images may have. The accuracy among all classes is reported "
        "too, and the source metric beside it is over the same list. Multiclass only",
        json_schema_extra={"absent": "all classes"},
    )
    streamed: bool = Field(
        False,
        description="read image by image without a pixel cache, and keep one prediction per image "
        "(class, confidence, entropy), and the logits of a few hundred images of each domain only. "
        "Images are never cropped then, and resized only where the model's size is another. "
        "Multiclass only",
    )
    score: Literal["all", "matched"] = Field(
        "all",
        description="which score its panel of the figure shows: over `all` classes, or `matched`",
    )


class ExtraOutputSettings(Section):
    """Extra inference outputs, made where a metric or an analysis needs them."""

    images: Pairs = Field(
        2000,
        description="how many of the pool's first images are forwarded again (embeddings are taken "
        "of the whole view), and how many of each domain of a target",
    )
    samples: Pairs = Field(20, description="forward passes with dropout")
    head_dropout: Share | None = Field(
        0.1,
        description="share of the last layer's input that is dropped in models without a dropout "
        "layer; such values are marked. `null`: such models have no MC dropout",
    )
    perturbations: Count = Field(
        8,
        description="small Gaussian perturbations of each image",
    )
    perturbation_norm: Positive = Field(
        0.01,
        description="their norm relative to the image's, in the model's input space",
    )
    jacobian_images: Count = Field(
        200,
        description="at how many of the `images`, from the first, the Jacobian's spectral norm is "
        "taken; each costs one forward pass and 1 + 2 `power_iterations` backward passes",
    )
    power_iterations: Count = Field(
        5,
        description="power iterations towards the spectral norm",
    )


class StressSettings(Section):
    """Stress tests: labeled source images under changes that keep the label."""

    changes: Names = Field(
        description="the changes, by name; see [Stress tests](#stress-tests). Those that resemble "
        "what will differ after deployment say most"
    )
    images: Pairs = Field(
        1000,
        description="how many labeled images of the pairs, from the first, are forwarded under "
        "each change; of the split of `id` where the study has one",
    )


class StatisticsSettings(Section):
    """How correlations are tested and what counts."""

    permutations: Count = Field(10_000, description="permutations of a test")
    resamples: Count = Field(10_000, description="resamples of a bootstrap")
    level: Share = Field(0.95, description="level of the intervals")
    minimum: Count = Field(
        10, description="positives and negatives that a class needs for its AUROC to count"
    )
    mixed: bool = Field(
        False,
        description="whether `baselines` also gives every predictor over all the models that have "
        "it, as the paper's table does",
    )
    delta: Threshold = Field(
        None,
        description="for `alarm`, the value of an outcome below which a model fails: a number, or "
        "one per outcome (`{vindr: 0.821}`)",
        json_schema_extra={"absent": "the median over the models"},
    )
    selections: ByKey[Names] = Field(
        {},
        description="for `backbones`, named lists of models that are compared like those of one "
        "backbone",
    )
    equivalence: Annotated[float, Field(gt=0, le=2)] | None = Field(
        None,
        description="the difference of two correlations below which `probit` calls them equivalent",
        json_schema_extra={"absent": "0.1"},
    )


class StudyFile(Section):
    """config/studies/<name>.yaml: one experiment."""

    title: Name = Field(description="what figures call the study")
    notice: Sentence = Field(
        "",
        description="a sentence that every figure carries",
        json_schema_extra={"absent": "the source data set's"},
    )
    task: Task = Field(
        description="`multilabel` (sigmoid outputs, macro-AUROC) or `multiclass` (softmax, top-1 "
        "accuracy)"
    )
    classes: Classes = Field(
        description="the classes, in the order of the models' outputs, or the name of a list: "
        "`imagenet` (the 1,000 WordNet ids in timm's order) or a file in `resources/classes/`"
    )
    source: SourceSettings = Field(description="the images that the models know; see below")
    preprocessing: PreprocessingBlock = Field(
        description="how an image becomes pixels; see below. A model's own keys override it"
    )
    cached_size: Annotated[int, Field(ge=0)] = Field(
        256,
        description="the largest side, in pixels, whose images are kept decoded on disk (the pixel "
        "cache). Larger ones are decoded again while each model runs, unless the preprocessing is "
        "the study's own, and nothing of them is kept. Training images are always kept",
    )
    pairs: PairSettings = Field(description="see below")
    estimator: Estimator = Field(
        "exact",
        description="the headline score: `exact` (all random pairs that the forwarded images "
        "allow; all drawn pairs of visits, or all pairs of one class among those images) or "
        "`sampled` (`n_pairs` drawn semantic and random pairs, as in the paper); the other is "
        "reported beside it",
    )
    calibration: CalibrationSettings = Field(description="see below")
    id: IdSettings | None = Field(
        None,
        description="labeled source images for the source metric: their `split`. Images that the "
        "pairs use already are not forwarded again",
        json_schema_extra={"absent": "the images of the pairs"},
    )
    targets: dict[TargetKey, TargetSettings] = Field(
        {},
        description='labeled images that play "after deployment", by name; see below. A study '
        "without targets ends in a ranked leaderboard",
    )
    zoo: Names = Field(description="zoo files whose models take part")
    models: Names | None = Field(
        None,
        description="only these models of the zoo",
        json_schema_extra={"absent": "all of them"},
    )
    optional_models: bool = Field(
        False, description="whether the models that a zoo calls `optional` take part too"
    )
    analyses: Distinct[str] = Field(
        [], description="further tables and figures, by name; see [Analyses](#analyses)"
    )
    metrics: Names | None = Field(
        None,
        description="the metrics that `baselines` compares, by name (`python -m stamp metrics` "
        "lists them)",
        json_schema_extra={"absent": "all that the task has, without optional ones"},
    )
    optional_metrics: Distinct[str] = Field(
        [],
        description="metrics beside these that take longer or need a further package: "
        "`projection_norm` (trains every network for each domain), `persistence_h1` (gudhi)",
    )
    show_images: bool | None = Field(
        None,
        description="whether the study's page holds small copies of the images of a few pairs, "
        "and their names; it then says so on top",
        json_schema_extra={"absent": "only for `generated` and `bundled` data"},
    )
    extra_outputs: ExtraOutputSettings = Field(
        ExtraOutputSettings(),
        description="extra inference outputs on the source; see below",
        json_schema_extra={"absent": "see below"},
    )
    stress: StressSettings | None = Field(
        None,
        description="stress tests; see below. The analysis `robustness` is then made too",
        json_schema_extra={"absent": "none"},
    )
    statistics: StatisticsSettings = Field(
        StatisticsSettings(), description="see below", json_schema_extra={"absent": "see below"}
    )
