"""Health flags: what makes a model's score doubtful, in words that a non-specialist understands.

Leaderboard, cards, figures and the page take their flags, and the words for them, from here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Row = Mapping[str, Any]
Severity = Literal["stop", "caution", "note"]
SEVERITIES: tuple[Severity, ...] = ("stop", "caution", "note")

FEW_UNITS, FEW_PAIRS = 30, 100
# What `raised` reads of a row; a column that is not there raises nothing.
COLUMNS = (
    "unavailable", "degenerate", "excluded", "metric", "source_metric", "source_low", "source_high",
    "source_no_skill", "leakage", "trained_on", "identical_to", "hard", "saturated",
    "temperature", "temperature_bound", "missing", "contaminated", "kind", "groups", "images",
    "n_units", "n_semantic",
)  # fmt: skip
METRICS = {"auroc": "macro-AUROC", "top1": "top-1 accuracy"}


@dataclass(frozen=True, slots=True)
class Flag:
    """One kind of doubt: how grave it is, what it means, what to do."""

    name: str
    severity: Severity
    label: str
    meaning: str
    advice: str


@dataclass(frozen=True, slots=True)
class Raised:
    """A flag that a model has: ``words`` is what tables print, ``reason`` a whole sentence."""

    flag: Flag
    words: str
    reason: str


def raised(row: Row) -> list[Raised]:
    """The flags of a model from its row of the leaderboard or scoreboard, the gravest first."""
    found = []
    for name, flag in FLAGS.items():
        if told := _RULES[name](row):
            words, reason = told
            found.append(Raised(flag, words, reason))
    return sorted(found, key=lambda one: SEVERITIES.index(one.flag.severity))


def words(row: Row) -> str:
    """The flags of a model for one cell of a table, empty where there are none."""
    return "; ".join(one.words for one in raised(row))


def no_skill_name(metric: str | None) -> str:
    """What a metric is at least beaten by: ``majority-class rate``, or chance for an AUROC."""
    return "majority-class rate" if metric == "top1" else "chance"


def behind(row: Row, kind: str | None) -> tuple[str, int | None]:
    """What a score of pairs of some kind rests on: how many ``groups`` (patients), or ``images``.

    Class pairs rest on images, but for data with patients: there fewer units than images are
    resampled, and these are the patients.
    """
    if kind != "class":
        return "groups", row.get("groups")
    units, images = row.get("n_units"), row.get("images")
    if units is not None and images is not None and units < images:
        return "groups", units
    return "images", images


_FLAGS = (
    Flag(
        "unavailable",
        "stop",
        "not available",
        "The model could not be scored.",
        "See the reason; the other models are not affected.",
    ),
    Flag(
        "degenerate",
        "stop",
        "degenerate",
        "The model says practically the same for every image, so it has no score: by the formula "
        "a constant would get the best one.",
        "Do not use the model. Check that its weights and its preprocessing are the right ones.",
    ),
    Flag(
        "no_skill",
        "stop",
        "no better than guessing",
        "On labeled source images the model can't be told from an answer that ignores the image: "
        "always the most frequent class, or a random order.",
        "Do not use the model, whatever its score. Check its weights, its preprocessing and the "
        "order of its classes.",
    ),
    Flag(
        "excluded",
        "stop",
        "excluded",
        "A rule that the study declared before scoring takes this model out of the ranking.",
        "Do not compare it with the others. The rule is `calibration.exclude` of the study.",
    ),
    Flag(
        "leakage",
        "stop",
        "leakage",
        "The model was trained on images or patients that it is scored on, so score and source "
        "metric are too good.",
        "Score it on a split that it has never seen.",
    ),
    Flag(
        "identical",
        "caution",
        "identical outputs",
        "Another model gives exactly the same outputs on these images: one model is counted twice.",
        "Keep one of them. If they should differ, one was given the other's weights or outputs.",
    ),
    Flag(
        "hard",
        "caution",
        "hard predictions",
        "The outputs are zeros and ones, not probabilities, so the score counts only changes of "
        "the predicted label. Temperature scaling can't bring back what was rounded away.",
        "Give the model's probabilities or logits from before rounding.",
    ),
    Flag(
        "saturated",
        "caution",
        "saturated",
        "Nearly all outputs are close to zero or one, so the score counts little more than changes "
        "of the predicted label.",
        "Compare it with other models only with temperature scaling (`calibration.scale`).",
    ),
    Flag(
        "temperature_bound",
        "caution",
        "temperature at its bound",
        "The search for how far to soften or sharpen the model's confidence ran into the end of "
        "its range, so the temperature is not a fitted value.",
        "Check that the outputs are logits (or are declared as probabilities), and that the "
        "calibration images are labeled, not too few, and not training images.",
    ),
    Flag(
        "missing",
        "caution",
        "missing classes",
        "The model has no output for some classes of the study; its score is over the others.",
        "Compare it with models that answer the same classes.",
    ),
    Flag(
        "contaminated",
        "caution",
        "has met a target",
        "The model was trained or selected on a data set that also serves as a target, so its "
        "result there is too good.",
        "Read the correlations under `uncontaminated`, which leave it out there.",
    ),
    Flag(
        "few",
        "caution",
        "few patients or pairs",
        "The score rests on so little that another sample could give another one, and its "
        "interval is rough too.",
        "Add patients; more pairs of the same patients help less.",
    ),
    Flag(
        "training_unknown",
        "caution",
        "training data not known",
        "If the model has seen these images or patients in training, score and source metric are "
        "too good, and nothing here would show it.",
        "Say it: `trained_on` in the zoo, `--trained-on` of audit-model.",
    ),
)
FLAGS: dict[str, Flag] = {flag.name: flag for flag in _FLAGS}


# --- when a row raises a flag: the words of a table and the reason -------------------------------

Told = tuple[str, str] | None


def _unavailable(row: Row) -> Told:
    why = row.get("unavailable")
    return (f"not available: {why}", f"It could not be scored: {why}.") if why else None


def _degenerate(row: Row) -> Told:
    if not row.get("degenerate"):
        return None
    return "degenerate", "Its outputs hardly vary over the images."


def _no_skill(row: Row) -> Told:
    value, floor = _number(row, "source_metric"), _number(row, "source_no_skill")
    if value is None or floor is None:
        return None
    low, high = _number(row, "source_low"), _number(row, "source_high")
    if (value if low is None else low) > floor:
        return None
    metric = row.get("metric")
    name, least = METRICS.get(str(metric), "source metric"), no_skill_name(metric)
    interval = "" if low is None or high is None else f" (interval {low:.3f} to {high:.3f})"
    where = "below" if value <= floor else "not clearly above"
    told = f"Its {name} {value:.3f}{interval} is {where} the {least} {floor:.3f}."
    return f"no better than {'the majority class' if metric == 'top1' else 'chance'}", told


def _excluded(row: Row) -> Told:
    why = row.get("excluded")
    return (f"excluded: {why}", f"The study's rule: {why}.") if why else None


def _leakage(row: Row) -> Told:
    if not row.get("leakage"):
        return None
    seen = row.get("trained_on")
    return "leakage", f"It was trained on {seen or 'what it is scored on'}."


def _identical(row: Row) -> Told:
    others = row.get("identical_to")
    if not others:
        return None
    return f"same outputs as {others}", f"Its outputs are those of {others}."


def _hard(row: Row) -> Told:
    if not row.get("hard") or row.get("degenerate"):
        return None
    told = "More than 99 % of the images have exact zeros and ones, before any scaling."
    return "hard predictions (saturated before scaling)", told


def _saturated(row: Row) -> Told:
    if not row.get("saturated") or row.get("hard"):
        return None
    return "saturated", "More than 99 % of its outputs are within 0.01 of zeros and ones."


_BOUNDS = {
    "upper": "However much its confidence is softened, softer still fits better: its confidence "
    "says almost nothing about how often it is right",
    "lower": "However much its confidence is sharpened, sharper still fits better: it makes no or "
    "almost no mistake on the calibration images, which may be training images or too few",
    "flat": "No temperature fits better than another: its outputs do not depend on the image",
}


def _temperature_bound(row: Row) -> Told:
    end = row.get("temperature_bound")
    if not end:
        return None
    fitted = _number(row, "temperature")
    value = "" if fitted is None else f" (temperature {fitted:.3g})"
    told = f"{_BOUNDS.get(end, 'The fitted temperature is no optimum')}{value}."
    return (
        "temperature can't be fitted" if end == "flat" else f"temperature at its {end} bound",
        told,
    )


def _missing(row: Row) -> Told:
    names = row.get("missing")
    return (f"no output for {names}", f"It has no output for {names}.") if names else None


def _contaminated(row: Row) -> Told:
    names = row.get("contaminated")
    if not names:
        return None
    return f"trained or selected on {names}", f"It was trained or selected on {names}."


def _few(row: Row) -> Told:
    unit, units = behind(row, row.get("kind"))
    pairs, found = row.get("n_semantic"), []
    if units is not None and units < FEW_UNITS:
        found.append((f"few {unit} ({units})", f"{units} {unit} (fewer than {FEW_UNITS})"))
    if pairs is not None and pairs < FEW_PAIRS:
        found.append((f"few pairs ({pairs})", f"{pairs} pairs (fewer than {FEW_PAIRS})"))
    if not found:
        return None
    return ", ".join(
        one for one, _ in found
    ), f"It rests on {' and '.join(two for _, two in found)}."


def _training_unknown(row: Row) -> Told:
    if "trained_on" not in row or row["trained_on"] is not None or row.get("leakage"):
        return None
    return "training data not known", "Nothing says what it was trained on."


def _number(row: Row, name: str) -> float | None:
    """A value of the row; None where there is none."""
    value = row.get(name)
    return None if value is None or math.isnan(value) else float(value)


_RULES: dict[str, Callable[[Row], Told]] = {
    "unavailable": _unavailable,
    "degenerate": _degenerate,
    "no_skill": _no_skill,
    "excluded": _excluded,
    "leakage": _leakage,
    "identical": _identical,
    "hard": _hard,
    "saturated": _saturated,
    "temperature_bound": _temperature_bound,
    "missing": _missing,
    "contaminated": _contaminated,
    "few": _few,
    "training_unknown": _training_unknown,
}
