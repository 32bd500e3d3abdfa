"""Flags: which row raises which, the gravest first, in words that tell the numbers."""

from __future__ import annotations

import pytest

from stamp.report import flags

SOUND = {
    "model": "m",
    "unavailable": None,
    "degenerate": False,
    "excluded": None,
    "metric": "top1",
    "source_metric": 0.8,
    "source_low": 0.75,
    "source_high": 0.85,
    "source_no_skill": 0.606,
    "leakage": False,
    "trained_on": "train",
    "identical_to": None,
    "hard": False,
    "saturated": False,
    "temperature": 1.2,
    "temperature_bound": None,
    "missing": None,
    "contaminated": None,
    "kind": "temporal",
    "groups": 300,
    "images": 900,
    "n_units": 900,
    "n_semantic": 600,
}
# What is wrong, the flag it raises, and what the reason must name.
DEFECTS = [
    ({"unavailable": "has no classifier"}, "unavailable", "has no classifier"),
    ({"degenerate": True}, "degenerate", "hardly vary"),
    ({"source_metric": 0.439, "source_low": 0.40}, "no_skill", "0.439"),
    ({"source_metric": 0.62, "source_low": 0.58}, "no_skill", "0.606"),
    ({"metric": "auroc", "source_metric": 0.52, "source_low": 0.49, "source_no_skill": 0.5},
     "no_skill", "chance 0.500"),
    ({"source_metric": 0.6, "source_low": None}, "no_skill", "0.600"),
    ({"excluded": "temperature 4 is above 3"}, "excluded", "above 3"),
    ({"leakage": True, "trained_on": "test"}, "leakage", "test"),
    ({"identical_to": "other"}, "identical", "other"),
    ({"hard": True, "saturated": True}, "hard", "zeros and ones"),
    ({"saturated": True}, "saturated", "99 %"),
    ({"temperature_bound": "upper", "temperature": 20.0}, "temperature_bound", "20"),
    ({"temperature_bound": "lower", "temperature": 0.05}, "temperature_bound", "0.05"),
    ({"temperature_bound": "flat", "temperature": 1.0}, "temperature_bound", "image"),
    ({"missing": "Edema, Mass"}, "missing", "Edema, Mass"),
    ({"contaminated": "clinic"}, "contaminated", "clinic"),
    ({"groups": 12}, "few", "12 groups"),
    ({"n_semantic": 97}, "few", "97 pairs"),
    ({"kind": "class", "groups": 3, "images": 20}, "few", "20 images"),
    ({"kind": "class", "n_units": 12}, "few", "12 groups"),
    ({"trained_on": None}, "training_unknown", "trained on"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "name", "told"), DEFECTS)
def test_each_defect_raises_its_flag_and_no_other(wrong, name, told):
    (found,) = flags.raised({**SOUND, **wrong})
    assert found.flag is flags.FLAGS[name]
    assert told in found.reason and found.words
    assert flags.words({**SOUND, **wrong}) == found.words


def test_a_sound_model_and_an_empty_row_raise_nothing():
    assert flags.raised(SOUND) == flags.raised({}) == []
    assert flags.words(SOUND) == ""


def test_class_pairs_are_counted_by_images_not_by_the_few_classes():
    assert not flags.raised({**SOUND, "kind": "class", "groups": 2})


def test_the_gravest_flag_comes_first():
    row = {**SOUND, "trained_on": None, "missing": "Edema", "degenerate": True}
    found = [one.flag.severity for one in flags.raised(row)]
    assert found == ["stop", "caution", "caution"]
    assert flags.words(row).startswith("degenerate; no output for Edema")


def test_every_flag_is_raised_by_some_defect_and_reads_every_column_it_names():
    assert {name for _, name, _ in DEFECTS} == set(flags.FLAGS)
    assert {key for wrong, _, _ in DEFECTS for key in wrong} <= set(flags.COLUMNS)
    assert set(SOUND) - {"model"} == set(flags.COLUMNS)


def test_a_reader_gets_a_label_a_sentence_and_something_to_do():
    for flag in flags.FLAGS.values():
        assert flag.severity in flags.SEVERITIES
        assert len(flag.label) < 30 and flag.meaning.endswith(".") and flag.advice.endswith(".")
