"""The record of a card: what it takes from a row, what it says is not tested, where it is from."""

from __future__ import annotations

from typing import Any

import stamp
from stamp.report import card

SCORING = card.Scoring("clinic", "multilabel", ["Edema"], "temporal", ["test"], 0, 0.95, False)
ROW: dict[str, Any] = {
    **dict.fromkeys(card.NUMBERS, 0.5),
    "model": "m",
    "metric": "auroc",
    "source_metric": 0.8,
    "source_se": 0.02,
    "source_low": 0.76,
    "source_high": 0.84,
    "source_no_skill": 0.5,
    "source_n": 200,
    "source_reason": None,
    "degenerate": False,
    "excluded": None,
    "missing": None,
    "trained_on": "train",
    "groups": 50,
    "n_semantic": 150,
}


def made(**changes: Any) -> dict[str, Any]:
    return card.card({**ROW, **changes}, SCORING, card.Origin(command="again"))


def test_a_sound_model_without_targets_has_no_flag_and_is_not_tested_elsewhere() -> None:
    found = made()
    assert (found["flags"], found["raised"], found["command"]) == ("", [], "again")
    assert found["source_metric"]["no_skill"] == 0.5
    assert "elsewhere" in found["not_tested"][0]
    beside = card.card(ROW, SCORING, card.Origin(), {"north": 0.7})
    assert "but the targets" in beside["not_tested"][0] and beside["targets"] == {"north": 0.7}


def test_what_is_not_known_is_said_to_be_not_tested() -> None:
    sentences = len(made()["not_tested"])
    for changes, told in (
        ({"trained_on": None}, "in training"),
        ({"missing": "Mass"}, "Mass"),
        ({"source_reason": "1 of 2 classes (Mass: no positive)"}, "1 of 2 classes"),
        ({"source_metric": None}, "no source metric"),
    ):
        found = made(**changes)["not_tested"]
        assert len(found) == sentences + 1 and told in found[-1]


def test_a_raised_flag_brings_its_words_and_what_to_do() -> None:
    found = made(leakage=True, trained_on="test", stamp=None, degenerate=True)
    assert [one["name"] for one in found["raised"]] == ["degenerate", "leakage"]
    assert all(one["advice"] and one["meaning"] and one["reason"] for one in found["raised"])
    assert "no score" in found["meaning"]


def test_the_origin_tells_versions_and_weights_from_the_rest() -> None:
    metadata = {"model": "m", "ids": "1", "torch": "2.1", "device": "cpu", "parameters": "None"}
    metadata |= {"weights_sha256": "abc", "weights_file": "w.pt", "weights_hub": "None"}
    found = card.origin(metadata, "again")
    assert found.versions == {"stamp": stamp.__version__, "torch": "2.1"}
    assert found.weights == {"sha256": "abc", "file": "w.pt"}
    assert (found.device, found.command) == ("cpu", "again")


def test_both_estimators_stand_on_the_card_where_a_row_has_both() -> None:
    found = made(estimator="exact", sampled_stamp=0.4)
    assert (found["estimator"], found["sampled_stamp"]) == ("exact", 0.4)
    assert "exact_stamp" not in found
