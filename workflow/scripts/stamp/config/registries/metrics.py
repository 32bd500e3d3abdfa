"""The other predictors that STAMP is compared with: what each needs, and which way it points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

BOTH = ("multiclass", "multilabel")
PROJECTION_NORM, TOGETHER_BY = "projection_norm", "agreement_on_the_line"  # rules


@dataclass(frozen=True, slots=True)
class Metric:
    """A predictor of how a model will do elsewhere.

    ``needs`` names what it takes: probabilities, logits or embeddings on the source pool, labels
    (of the source), gradients, extra forward passes, target images (unlabeled), target labels (for
    reference: who must choose has none), other models. ``direction`` is 1 where more should mean
    better on the targets, -1 where less should. ``extra_outputs`` are the kinds of extra inference
    outputs that it is made from, ``of_stress_tests`` says whether the study's stress tests are.
    ``sum_of`` are the metrics that it is the mean z-score of, over the models of a study. An
    ``optional`` one is computed where a study asks for it, with the ``package`` that it needs.
    ``rule`` is the one that computes it. ``unavailable`` is why there is none here.
    """

    name: str
    title: str
    needs: tuple[str, ...]
    direction: int
    reference: str
    tasks: tuple[str, ...] = BOTH
    extra_outputs: tuple[str, ...] = ()
    of_stress_tests: bool = False
    sum_of: tuple[str, ...] = ()
    optional: bool = False
    package: str = ""
    rule: str = "metrics"
    unavailable: str = ""

    @property
    def of_one_model(self) -> bool:
        """Whether it can be had from one model alone."""
        return "other models" not in self.needs

    @property
    def of_target(self) -> bool:
        """Whether it is of one target, from the target's images."""
        return "target images" in self.needs

    @property
    def group(self) -> str:
        """The group that the cost table counts it in."""
        if self.rule == TOGETHER_BY:
            return "Several models"
        if self.of_stress_tests:
            return "Stress tests"
        if self.rule == PROJECTION_NORM:
            return "Projection Norm"
        if self.of_target:
            if self.extra_outputs:
                return "Target embeddings"
            return "Target images" if "labels" in self.needs else "Target outputs alone"
        kinds = [kind for kind in self.extra_outputs if kind != "embeddings"]
        return GROUPS.get(kinds[0], "Augmented views") if kinds else self._plain

    @property
    def _plain(self) -> str:
        return "Embeddings" if self.extra_outputs else "Outputs"


GROUPS = {"mc_dropout": "MC dropout", "gradcam": "Grad-CAM", "rotation_prediction": "Rotations"}
PROBABILITIES, LOGITS = ("probabilities",), ("logits",)
EMBEDDINGS, PASSES = ("embeddings",), ("probabilities", "extra forward passes")
LABELED, ESTIMATE = ("probabilities", "labels"), ("probabilities", "labels", "target images")
TOGETHER = (*ESTIMATE, "other models")
ON_TARGET = ("target images",)
LABELED_EMBEDDINGS = ("embeddings", "labels")
LABELED_TARGET = ("target images", "target labels")
BOTH_EMBEDDINGS = ("embeddings", "target_embeddings")
SINGLE, SEVERAL = ("multiclass",), ("multilabel",)


def _augmented(kind: str, title: str, reference: str) -> Metric:
    """STAMP with the pairs (x, a(x)) in the place of semantic ones."""
    return Metric(f"aug_{kind}", title, PASSES, 1, reference, extra_outputs=(kind,))


def _of_source(name: str, title: str, needs: tuple[str, ...], reference: str) -> Metric:
    """A metric that its authors take on a target's images, on those of the source."""
    where = f"after {reference}, on the source"
    return Metric(f"{name}_source", f"{title}, source", needs, 1, where)


def _of_labeled_target(source: Metric) -> Metric:
    """A transferability score of the source, of a labeled target: the best that it could be."""
    needs = tuple(need for need in source.needs if need != "labels")
    return Metric(
        f"{source.name}_target",
        source.title.replace("source", "labeled target"),
        (*needs, *LABELED_TARGET),
        source.direction,
        f"{source.reference}, on the labeled target: for reference",
        extra_outputs=("target_embeddings",) if source.extra_outputs else (),
    )


def _of_classes(name: str, title: str, direction: int, reference: str, **more: Any) -> Metric:
    """A signal of the graphs of each class's embeddings."""
    where = f"after Hazratian et al. 2026: {reference}"
    made = {"extra_outputs": ("embeddings",), **more}
    return Metric(name, title, LABELED_EMBEDDINGS, direction, where, **made)


LOGME = Metric(
    "logme",
    "LogME, source",
    LABELED_EMBEDDINGS,
    1,
    "You et al. 2021",
    extra_outputs=("embeddings",),
)
LEEP = Metric("leep", "LEEP, source", LABELED, 1, "Nguyen et al. 2020")
H_SCORE = Metric(
    "h_score",
    "H-score, source",
    LABELED_EMBEDDINGS,
    1,
    "Bao et al. 2019",
    extra_outputs=("embeddings",),
)
SIGNALS = (
    _of_classes(
        "laplacian_logdet",
        "Laplacian log-determinant",
        -1,
        "without the zero modes, of mutual 10-nearest-neighbour graphs of 50 images",
    ),
    _of_classes("ollivier_ricci", "Ollivier-Ricci curvature", 1, "mean over the graphs' edges"),
    _of_classes(
        "persistence_h0", "H0 persistence", -1, "total lifetime of connected parts; direction ours"
    ),
)

METRICS = (
    Metric("entropy", "Entropy", PROBABILITIES, -1, "mean entropy of the outputs"),
    Metric("confidence", "Mean confidence", PROBABILITIES, 1, "mean largest probability"),
    Metric(
        "confidence_two_sided",
        "Two-sided confidence",
        PROBABILITIES,
        1,
        "mean max(p, 1 - p)",
        SEVERAL,
    ),
    Metric("ece", "ECE", LABELED, -1, "Guo et al. 2017, 15 bins"),
    Metric("prediction_std", "Prediction std", PROBABILITIES, 1, "mean std of an output"),
    Metric(
        "mc_dropout",
        "MC dropout, own or head",
        PASSES,
        -1,
        "Gal and Ghahramani 2016, 20 passes; before the last layer where a network has none",
        extra_outputs=("mc_dropout",),
    ),
    Metric(
        "tta_flip", "TTA flip", PASSES, -1, "squared distance to the flip", extra_outputs=("flip",)
    ),
    Metric(
        "tta_multi",
        "TTA multi",
        PASSES,
        -1,
        "variance over 11 views",
        extra_outputs=("flip", "tta"),
    ),
    Metric(
        "embedding_instability",
        "Embedding instability",
        EMBEDDINGS,
        -1,
        "mean 1 - cos of semantic pairs",
        extra_outputs=("embeddings",),
    ),
    Metric(
        "gradcam_dice",
        "Grad-CAM Dice",
        ("gradients", "extra forward passes"),
        1,
        "Selvaraju et al. 2017, overlap with the mirror image's map",
        extra_outputs=("gradcam",),
    ),
    Metric(
        "gradcam_dice_pairs",
        "Grad-CAM Dice, pairs",
        ("gradients", "extra forward passes"),
        1,
        "Selvaraju et al. 2017, overlap within semantic pairs",
        extra_outputs=("gradcam",),
    ),
    Metric(
        "fd",
        "Feature discriminability",
        ("embeddings", "labels"),
        1,
        "between-class share of the embeddings' variance",
        extra_outputs=("embeddings",),
    ),
    Metric(
        "fd_groups",
        "Feature STAMP",
        EMBEDDINGS,
        1,
        "between-group share of the embeddings' variance",
        extra_outputs=("embeddings",),
    ),
    Metric(
        "fd_frechet",
        "Frechet distance, augmented",
        ("embeddings", "extra forward passes"),
        -1,
        "Deng and Zheng 2021, source against augmented source",
        extra_outputs=("embeddings", "composite"),
    ),
    Metric(
        "rot_acc",
        "Rotation accuracy",
        ("embeddings", "extra forward passes"),
        1,
        "Deng et al. 2021, 4-way linear probe",
        extra_outputs=("embeddings", "rotation_prediction"),
    ),
    Metric(
        "feature_alignment",
        "Feature alignment",
        EMBEDDINGS,
        1,
        "after Wang and Isola 2020",
        extra_outputs=("embeddings",),
    ),
    _augmented("flip", "Aug-STAMP flip", "SV of (x, flipped x)"),
    _augmented("rotation", "Aug-STAMP rotation", "SV of (x, x rotated by up to 10 degrees)"),
    _augmented("brightness", "Aug-STAMP brightness", "SV of (x, x times .8 to 1.2)"),
    _augmented("contrast", "Aug-STAMP contrast", "SV of (x, x at contrast .8 to 1.2)"),
    _augmented("crop", "Aug-STAMP crop", "SV of (x, a crop of 80 to 100 %)"),
    _augmented("composite", "Synthetic STAMP", "SV of (x, all five augmentations)"),
    Metric(
        "stress_metric",
        "Stress metric",
        ("probabilities", "labels", "extra forward passes"),
        1,
        "mean accuracy or macro-AUROC under the study's stress tests",
        of_stress_tests=True,
    ),
    Metric(
        "stress_stability",
        "Stress stability",
        PASSES,
        1,
        "1 - SV of (x, changed x) over AV, mean over the study's stress tests",
        of_stress_tests=True,
    ),
    _of_source("nuclear_norm", "Nuclear norm", PROBABILITIES, "Deng et al. 2023"),
    Metric(
        "dispersion_source",
        "Dispersion, source",
        ("embeddings", "probabilities"),
        1,
        "after Xie et al. 2023, who take a target",
        extra_outputs=("embeddings",),
    ),
    _of_source("energy", "Energy", LOGITS, "Liu et al. 2020, Wang et al. 2021"),
    _of_source("mde", "MDE", LOGITS, "Peng et al. 2024"),
    Metric(
        "effective_rank",
        "Effective rank",
        EMBEDDINGS,
        1,
        "Garrido et al. 2023, on centred embeddings",
        extra_outputs=("embeddings",),
    ),
    _of_source("mano", "MaNo", LOGITS, "Xie et al. 2024, p = 4"),
    Metric("margin", "Margin", PROBABILITIES, 1, "mean gap of the two largest probabilities"),
    Metric(
        "feature_norm",
        "Feature norm",
        EMBEDDINGS,
        1,
        "mean length of embeddings",
        extra_outputs=("embeddings",),
    ),
    LOGME,
    LEEP,
    H_SCORE,
    *SIGNALS,
    _of_classes(
        "persistence_h1",
        "H1 persistence",
        -1,
        "total lifetime of loops; direction ours",
        optional=True,
        package="gudhi",
    ),
    Metric(
        "topogeo",
        "TopoGeo signals, sum",
        (*LABELED_EMBEDDINGS, "other models"),
        1,
        "after Hazratian et al. 2026, whose weights are not published: mean over the models' "
        "z-scores of curvature, log-determinant and H0 persistence, each in its direction",
        extra_outputs=("embeddings",),
        sum_of=tuple(one.name for one in SIGNALS),
    ),
    Metric(
        "ddb",
        "Inside-Out DDB",
        ("gradients",),
        1,
        "Peng et al. 2026; not computed",
        unavailable="needs circuit discovery inside vision transformers",
    ),
    Metric("atc_mc", "ATC-MC", ESTIMATE, 1, "Garg et al. 2022"),
    Metric("atc_ne", "ATC-NE", ESTIMATE, 1, "Garg et al. 2022", SINGLE),
    Metric("doc", "DoC", ESTIMATE, 1, "Guillory et al. 2021"),
    Metric("cbpe_auroc", "Expected AUROC", ESTIMATE, 1, "CBPE", SEVERAL),
    Metric("nuclear_norm", "Nuclear norm", (*PROBABILITIES, *ON_TARGET), 1, "Deng et al. 2023"),
    Metric(
        "dispersion",
        "Dispersion",
        ("embeddings", "probabilities", *ON_TARGET),
        1,
        "Xie et al. 2023",
        extra_outputs=("target_embeddings",),
    ),
    Metric("energy", "Energy", (*LOGITS, *ON_TARGET), 1, "Liu et al. 2020, Wang et al. 2021"),
    Metric(
        "mde",
        "MDE",
        (*LOGITS, *ON_TARGET),
        1,
        "Peng et al. 2024; direction by argument, not by the source",
    ),
    Metric("mano", "MaNo", (*LOGITS, *ON_TARGET), 1, "Xie et al. 2024, p = 4"),
    Metric(
        "fd_target",
        "Frechet distance, target",
        ("embeddings", "target images"),
        -1,
        "Deng and Zheng 2021, source against target",
        extra_outputs=("embeddings", "target_embeddings"),
    ),
    Metric(
        "mmd",
        "MMD",
        ("embeddings", "target images"),
        -1,
        "Gretton et al. 2012, Gaussian kernel as wide as the source's median distance",
        extra_outputs=BOTH_EMBEDDINGS,
    ),
    Metric(
        "proxy_a_distance",
        "Proxy A-distance",
        ("embeddings", "target images"),
        -1,
        "Ben-David et al. 2010, for their divergence; ridge classifier of source against target",
        extra_outputs=BOTH_EMBEDDINGS,
    ),
    *(_of_labeled_target(one) for one in (LOGME, LEEP, H_SCORE)),
    Metric(
        "projection_norm",
        "Projection Norm",
        ("probabilities", "gradients", "target images"),
        -1,
        "Yu et al. 2022, by a short training, relative to the way of the reference",
        optional=True,
        rule=PROJECTION_NORM,
    ),
    Metric("aline_s", "ALine-S", TOGETHER, 1, "Baek et al. 2022", rule=TOGETHER_BY),
    Metric("aline_d", "ALine-D", TOGETHER, 1, "Baek et al. 2022", rule=TOGETHER_BY),
    Metric(
        "aline_d_auroc",
        "ALine-D, AUROC",
        TOGETHER,
        1,
        "after Baek et al. 2022, concordance in the place of agreement",
        SEVERAL,
        rule=TOGETHER_BY,
    ),
)


def metrics_of(task: str, optional: bool = False, stress_tests: bool = True) -> list[Metric]:
    """The metrics of a task that the rule ``metrics`` computes, each of one model."""
    own = [one for one in METRICS if one.rule == "metrics" and one.of_one_model]
    own = [one for one in own if task in one.tasks and (optional or not one.optional)]
    return [one for one in own if stress_tests or not one.of_stress_tests]
