"""How often a partial correlation given a noisy source metric finds an effect that is not there.

Made-up zoos of models. Their true source accuracies follow a normal distribution on the probit
scale around 80 %, and are measured with the error of 500 or 2,000 images. Scores and outcomes
depend on the true accuracy, and on each other only where there is an effect. Four estimates are
compared: the plain partial Spearman correlation with its t test; SIMEX with a jackknife t test; and
the corrected one of ``stamp.stats.correlations.noisy_control``, once with each model's standard
error and once with the covariance of the errors. The last two differ where models are measured on
the same images and so share a part of their error: that part moves no rank, and must not be
corrected for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri, stdtr

from benchmarks.row import Row
from stamp.stats.correlations.correlation import asymptotic_p
from stamp.stats.correlations.noisy_control import SimulationSettings, partial_given_noisy_control
from stamp.stats.power import pearson_of
from stamp.stats.ranks import Array, centred_ranks, rank_correlation, spearman

ZOOS, RESAMPLES = 400, 199
ALPHA, EFFECT = 0.05, 0.5
CENTRE, SPREAD = float(ndtri(0.8)), 0.25  # of true accuracies, in probits: 72 % to 86 % mostly
NAMES, WIDTH = ("plain", "SIMEX", "corrected by se", "by covariance"), 44
LAMBDAS, REMEASURED = (0.0, 0.5, 1.0, 1.5, 2.0), 20  # SIMEX: added error variance, draws of each


@dataclass(frozen=True, slots=True)
class Design:
    """A kind of zoo: models, Spearman's rho of score and measured accuracy, images to measure it.

    ``link`` is the correlation of outcome and true accuracy, ``shared`` that of the errors of two
    models, ``uneven`` a zoo where one fifth of the models is far weaker than the rest.
    """

    n: int
    rho: float
    images: int
    link: float = 0.9
    shared: float = 0.0
    uneven: bool = False

    @property
    def name(self) -> str:
        """What sets the design apart, in words."""
        words = f"n {self.n}, rho {self.rho:.2f}, {self.images:,} images"
        words += ", noisy outcome" if self.link != 0.9 else ""
        words += f", {self.shared:.0%} shared" if self.shared else ""
        return words + (", uneven zoo" if self.uneven else "")


@dataclass(frozen=True, slots=True)
class Zoos:
    """Values [zoos, n] of many zoos of one design."""

    score: Array
    outcome: Array
    accuracy: Array
    error: Array
    shared: float = 0.0


@dataclass(frozen=True, slots=True)
class Found:
    """An estimate and its p per zoo, NaN where undefined, and whether its interval covers."""

    estimate: Array
    p: Array
    covered: Array | None = None


INDEPENDENT = tuple(
    Design(n, rho, images)
    for n in (12, 24, 44)
    for rho in (0.84, 0.90, 0.96)
    for images in (500, 2000)
)
SHARED = tuple(
    Design(n, rho, 500, shared=shared)
    for n in (12, 24, 44)
    for rho in (0.84, 0.90)
    for shared in (0.5, 0.8)
)
SPECIAL = tuple(
    replace(Design(24, 0.90, 2000), **change) for change in ({"link": 0.6}, {"uneven": True})
)


def accuracies(design: Design, t: Array) -> Array:
    """True accuracies of models whose quality is t, standard normal."""
    far = np.minimum(t - ndtri(0.2), 0)
    return ndtr(CENTRE + (SPREAD / 2 * t + 4 * SPREAD * far if design.uneven else SPREAD * t))


def measured(design: Design, true: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Accuracies measured on images, with their standard errors; a shared error moves all alike."""
    common, own = rng.standard_normal((len(true), 1)), rng.standard_normal(true.shape)
    noise = np.sqrt(design.shared) * common + np.sqrt(1 - design.shared) * own
    found = true + noise * np.sqrt(true * (1 - true) / design.images)
    found = np.clip(np.round(found * design.images), 1, design.images - 1) / design.images
    return found, np.sqrt(found * (1 - found) / design.images)


def zoos(design: Design, effect: float, seed: int = 0) -> Zoos:
    """Many zoos in which ``effect`` is the partial correlation given the true accuracy."""
    rng = np.random.default_rng([seed, design.n, round(100 * design.rho), design.images])
    many = rng.standard_normal((1, 20_000))
    true = accuracies(design, many)
    kept = pearson_of(spearman(true, measured(design, true, rng)[0])[0])
    score_link = min(float(pearson_of(design.rho) / kept), 1.0)
    t, score_rest, rest = rng.standard_normal((3, ZOOS, design.n))
    accuracy, error = measured(design, accuracies(design, t), rng)
    rest = effect * score_rest + np.sqrt(1 - effect**2) * rest
    return Zoos(
        score=score_link * t + np.sqrt(1 - score_link**2) * score_rest,
        outcome=design.link * t + np.sqrt(1 - design.link**2) * rest,
        accuracy=accuracy,
        error=error,
        shared=design.shared,
    )


def partial(score: Array, outcome: Array, control: Array) -> Array:
    """The plain partial Spearman correlation along the last axis."""
    x, y, w = (centred_ranks(values) for values in (score, outcome, control))
    xy, xw, yw = rank_correlation(x, y), rank_correlation(x, w), rank_correlation(y, w)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (xy - xw * yw) / np.sqrt((1 - xw**2) * (1 - yw**2))


def plain(data: Zoos) -> Found:
    """The plain partial correlation with its t test."""
    rho = partial(data.score, data.outcome, data.accuracy)
    return Found(rho, asymptotic_p(np.clip(rho, -1, 1), data.score.shape[1], controls=1))


def extrapolated(data: Zoos) -> Array:
    """SIMEX: partials with more and more error on the probit scale, extrapolated to none.

    A quadratic in the added error variance lambda, at lambda = -1 (Cook & Stefanski 1994).
    """
    probit = ndtri(data.accuracy)
    error = data.error * np.sqrt(2 * np.pi) * np.exp(probit**2 / 2)
    noise = np.random.default_rng(0).standard_normal((REMEASURED, *probit.shape)) * error
    means = [
        partial(data.score, data.outcome, probit + np.sqrt(more) * noise).mean(axis=0)
        for more in LAMBDAS
    ]
    square, line, constant = np.linalg.pinv(np.vander(LAMBDAS, 3)) @ np.stack(means)
    return square - line + constant


def simex(data: Zoos) -> Found:
    """SIMEX with a t test on Fisher's scale, its standard error by jackknife over models."""
    n = data.score.shape[1]
    without = []
    for left_out in range(n):
        rows = (data.score, data.outcome, data.accuracy, data.error)
        score, outcome, accuracy, error = (np.delete(row, left_out, axis=1) for row in rows)
        without.append(extrapolated(Zoos(score, outcome, accuracy, error)))
    estimate = extrapolated(data)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = (n - 1) / np.sqrt(n) * np.arctanh(without).std(axis=0, ddof=1)
        p = 2 * stdtr(n - 3, -np.abs(np.arctanh(estimate)) / spread)
    return Found(np.where(np.abs(estimate) < 1, estimate, np.nan), p)


def corrected(data: Zoos, effect: float, covariance: bool) -> Found:
    """The corrected partial correlation with its simulated p and interval.

    With ``covariance`` it knows which part of the errors the models share.
    """
    n = data.error.shape[1]
    together = data.shared + (1 - data.shared) * np.eye(n)
    found = [
        partial_given_noisy_control(
            *(data.score[k], data.outcome[k], data.accuracy[k]),
            np.outer(data.error[k], data.error[k]) * together if covariance else data.error[k],
            SimulationSettings(RESAMPLES, k),
        )
        for k in range(len(data.score))
    ]
    return Found(
        estimate=np.array([one.corrected for one in found]),
        p=np.array([one.p for one in found]),
        covered=np.array([one.low <= effect <= one.high for one in found if not one.reason]),
    )


def rejected(found: Found) -> float:
    """Share of zoos in which no effect is rejected; an undefined value rejects nothing."""
    return float((found.p <= ALPHA).mean())


def line(design: Design) -> tuple[str, list[float]]:
    """A design's line of the table, and the sizes of the tests."""
    none, some = zoos(design, 0.0), zoos(design, EFFECT)
    found = [
        (plain(none), plain(some)),
        (simex(none), simex(some)),
        *(
            (corrected(none, 0.0, known), corrected(some, EFFECT, known))
            for known in ((False, True) if design.shared else (True,))
        ),
    ]
    found = found if design.shared else [*found, found[-1]]  # the same where nothing is shared
    cells = [
        f"{np.nanmean(without.estimate):+6.2f} {np.nanmean(effect.estimate):+6.2f}"
        f" {rejected(without):5.3f} {rejected(effect):5.2f}"
        for without, effect in found
    ]
    ours = found[-1]
    covered = " ".join(f"{np.mean(one.covered):6.2f}" for one in ours)
    undefined = np.isnan(ours[0].estimate).mean()
    text = " | ".join([f"{design.name:<{WIDTH}}", *cells, f"{covered} {undefined:9.2f}"])
    return text, [rejected(without) for without, _ in found]


def main() -> list[Row]:
    """Print the table of all designs; the largest size of each test is its summary."""
    print(f"{ZOOS} zoos per line. True partial correlation 0: mean0, size, cover0;")
    print(f"{EFFECT}: mean1, power, cover1. Undefined values reject nothing.\n")
    head = f"{'mean0':>6} {'mean1':>6} {'size':>5} power"
    print(" | ".join([" " * WIDTH, *(f"{name:<{len(head)}}" for name in NAMES), ""]))
    print(" | ".join([" " * WIDTH, *[head] * len(NAMES), "cover0 cover1 undefined"]))
    rows = []
    for kind, designs in (("", INDEPENDENT), (", shared errors", SHARED), (", special", SPECIAL)):
        sizes = []
        for design in designs:
            text, size = line(design)
            print(text, flush=True)
            sizes.append(size)
        note = f"largest of {len(designs)} designs, {ZOOS} zoos each"
        rows += [
            Row(f"partial given a noisy control{kind}, size of {name}", value, "%", "5 %", note)
            for name, value in zip(NAMES, 100 * np.max(sizes, axis=0), strict=True)
        ]
    return rows
