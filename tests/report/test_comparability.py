"""Models of different pretraining data: told apart, and said to be no fair comparison."""

from __future__ import annotations

import numpy as np
import pytest
from made_up_study import replaced, study
from scipy.stats import spearmanr

from stamp.report import comparability, main_table
from stamp.report.analyses.pretraining import table as pretraining
from stamp.report.correlate import correlations


def test_one_sentence_names_the_kinds_and_nothing_is_said_of_one_kind() -> None:
    found = comparability.warning({"a": "in1k", "b": "in21k", "c": "in1k"})
    assert "in1k: 2" in found and "in21k: 1" in found and "0.21" in found
    assert comparability.warning({"a": "in1k", "b": "in1k"}) == ""


def test_strata_have_the_rank_correlations_of_their_own_models() -> None:
    rng = np.random.default_rng(0)
    said = {f"m{k}": "in1k" if k % 3 else "in21k" for k in range(20)}
    said["m19"] = "wit400m"
    score, truth = rng.normal(size=(2, 20))
    score[4] = np.nan
    rows = comparability.strata(said, {"STAMP": score}, truth)
    assert [(row["pretraining"], row["n"]) for row in rows] == [
        ("in1k", 12),
        ("in21k", 7),
        ("wit400m", 1),
    ]
    own = [k for k in range(20) if said[f"m{k}"] == "in1k" and k != 4]
    assert rows[0]["rho"]["STAMP"] == pytest.approx(spearmanr(score[own], truth[own])[0])
    assert rows[2]["rho"]["STAMP"] is None


def test_the_analysis_shows_the_strata_apart_and_says_why() -> None:
    data = study()
    kinds = {key: ("in1k", "in21k")[at % 2] for at, key in enumerate(data.models)}
    first = next(iter(data.models))
    models = {
        key: {**said, **({} if key == first else {"pretraining": kinds[key]})}
        for key, said in data.models.items()
    }
    given = replaced(data, models=models)
    found = pretraining.table(given)
    strata = found.filter(models="all", of="stamp", what="stratum")
    assert set(strata["stratum"]) == {"in1k", "in21k", "not said"}
    assert comparability.WENT_WRONG in pretraining.sentence(found)
    alone = replaced(data, models={key: {**one, "pretraining": "x"} for key, one in models.items()})
    assert "the same pretraining" in pretraining.sentence(pretraining.table(alone))


def test_the_main_table_says_it_where_pretraining_differs() -> None:
    data = study()
    table = main_table.main_table(
        correlations(data.scores, data.outcomes, data.settings, 0), data.texts
    )
    kinds = {key: ("none", "in1k")[at % 2] for at, key in enumerate(data.models)}
    assert comparability.WENT_WRONG in main_table.markdown(
        table, {**data.texts, "pretraining": kinds}
    )
    assert comparability.WENT_WRONG not in main_table.markdown(table, data.texts)
