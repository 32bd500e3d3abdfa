"""Pairs: who is compared with whom, in which fixed order."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from stamp.core.errors import UserError
from stamp.data.pairs import (
    changed,
    class_pair_count,
    class_pairs,
    consecutive,
    default_kind,
    endpoints,
    groups_are_classes,
    labeled,
    pool,
    random_pairs,
    sample,
    semantic_pairs,
    study_pairs,
)


def make_index(groups: list[int], orders: list[int] | None = None, **labels) -> pl.DataFrame:
    n = len(groups)
    return pl.DataFrame(
        {
            "image": [f"i{k:04d}" for k in range(n)],
            "group": [f"g{g:03d}" for g in groups],
            "order": pl.Series(orders if orders is not None else list(range(n)), dtype=pl.Int32),
            **labels,
        }
    )


def ids(pairs: pl.DataFrame) -> list[tuple[str, str]]:
    return list(zip(pairs["a"], pairs["b"], strict=True))


def shuffled(frame: pl.DataFrame, seed: int = 3) -> pl.DataFrame:
    return frame[np.random.default_rng(seed).permutation(frame.height)]


cohorts = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=30)


@given(cohorts, st.sampled_from(["order", "image"]))
def test_consecutive_pairs_are_the_neighbours_that_a_loop_over_groups_finds(cohort, order):
    index = make_index([g for g, _ in cohort], [o for _, o in cohort])
    expected = []
    for group in sorted(set(index["group"])):
        rows = index.filter(pl.col("group") == group).to_dicts()
        rows.sort(key=lambda row: (row["order"] if order == "order" else 0, row["image"]))
        expected += [(x["image"], y["image"]) for x, y in pairwise(rows)]
    found = consecutive(shuffled(index), order=order)
    assert ids(found) == expected
    assert (found["group_a"] == found["group_b"]).all()
    first = consecutive(index, "one_per_group", order)
    groups = [g for g, n in Counter(index["group"]).items() if n > 1]
    assert sorted(first["group_a"]) == sorted(groups)
    assert set(ids(first)) <= set(expected)


def test_one_pair_a_group_is_its_earliest():
    index = make_index([0, 0, 0, 1, 1], [7, 2, 4, 1, 0])
    assert ids(consecutive(index, "one_per_group")) == [("i0001", "i0002"), ("i0004", "i0003")]


def test_images_without_a_visit_are_left_out_unless_file_names_give_the_order():
    index = make_index([0, 0, 0, 1], [0, None, 3, None])
    assert ids(consecutive(index)) == [("i0000", "i0002")]
    assert ids(consecutive(index, order="image")) == [("i0000", "i0001"), ("i0001", "i0002")]
    with pytest.raises(UserError, match=r"none of 2 images .*'i0000'.*pairs\.order: image"):
        consecutive(make_index([0, 0], [None, None]))


def test_unknown_words_are_answered_with_the_nearest_known_one():
    index = make_index([0, 0])
    with pytest.raises(UserError, match="did you mean 'one_per_group'"):
        consecutive(index, "one_per_grup")
    with pytest.raises(UserError, match="did you mean 'temporal'"):
        semantic_pairs(index, "temporl", "all_consecutive", "order", [])
    with pytest.raises(UserError, match="did you mean 'Mass'"):
        labeled(consecutive(index), index.with_columns(Mass=pl.lit(1)), ["Mas"])


def test_an_unknown_label_equals_an_unknown_label_and_differs_from_a_known_one():
    index = make_index([0] * 4, Mass=[None, None, 0, 0], Edema=[1, 1, 1, 1])
    pairs = consecutive(index)
    assert ids(labeled(pairs, index, ["Mass", "Edema"])) == [("i0000", "i0001"), ("i0002", "i0003")]
    assert ids(changed(pairs, index, ["Mass", "Edema"])) == [("i0001", "i0002")]


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0, 1, None])), max_size=25))
def test_labeled_and_changed_pairs_split_the_temporal_ones(rows):
    index = make_index([g for g, _ in rows], Mass=pl.Series([y for _, y in rows], dtype=pl.Int8))
    kinds = {
        kind: ids(semantic_pairs(index, kind, "all_consecutive", "order", ["Mass"]))
        for kind in ("temporal", "labeled", "changed")
    }
    assert sorted(kinds["labeled"] + kinds["changed"]) == sorted(kinds["temporal"])
    assert not set(kinds["labeled"]) & set(kinds["changed"])
    label = dict(zip(index["image"], index["Mass"], strict=True))
    assert all(label[a] == label[b] for a, b in kinds["labeled"])


def test_one_labeled_pair_a_group_is_the_first_with_identical_labels_not_the_first_if_identical():
    index = make_index([0, 0, 0, 1, 1], label=[3, 4, 4, 5, 6])
    found = semantic_pairs(index, "labeled", "one_per_group", "order", ["label"])
    assert ids(found) == [("i0001", "i0002")]
    found = semantic_pairs(index, "changed", "one_per_group", "order", ["label"])
    assert ids(found) == [("i0000", "i0001"), ("i0003", "i0004")]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=20), st.integers(0, 2**32), st.data())
def test_class_pairs_are_distinct_of_one_class_and_nested(groups, seed, data):
    index = make_index(groups, label=groups)
    every = {
        pair
        for group in set(groups)
        for pair in combinations([f"i{k:04d}" for k, g in enumerate(groups) if g == group], 2)
    }
    found = class_pairs(index, len(every), seed)
    assert {tuple(sorted(pair)) for pair in ids(found)} == every
    assert (found["group_a"] == found["group_b"]).all()
    fewer = data.draw(st.integers(0, len(every)))
    assert_frame_equal(class_pairs(shuffled(index), fewer, seed), found[:fewer])
    with pytest.raises(UserError, match=rf"^{len(every)} class pairs .* are eligible"):
        class_pairs(index, len(every) + 1, seed)


def test_class_pairs_choose_the_class_not_the_image_uniformly():
    classes = [0] * 400 + [1] * 100 + [2]
    index = make_index(classes, label=classes)
    counts = Counter(class_pairs(index, 2000, 1)["group_a"])
    assert set(counts) == {"0", "1"}
    # A fifth of the second class's 4,950 pairs are drawn, a few of them twice and then dropped.
    assert 0.44 < counts["1"] / 2000 < 0.52


def patients_and_classes(seed=0, n=60):
    """An index with patients, visits and labels that change between them."""
    rng = np.random.default_rng(seed)
    groups = np.sort(rng.integers(0, 15, n)).tolist()
    return make_index(groups, label=pl.Series(rng.integers(0, 3, n), dtype=pl.Int16))


def test_class_pairs_are_by_label_and_never_of_one_patient():
    index = patients_and_classes()
    label = dict(zip(index["image"], index["label"], strict=True))
    patient = dict(zip(index["image"], index["group"], strict=True))
    every = {
        (a, b)
        for a, b in combinations(index["image"], 2)
        if label[a] == label[b] and patient[a] != patient[b]
    }
    assert class_pair_count(index, ["label"]) == len(every)
    found = class_pairs(index, len(every), 3)
    assert {tuple(sorted(pair)) for pair in ids(found)} == every
    assert [str(label[image]) for image in found["a"]] == found["group_a"].to_list()


def test_class_pairs_with_patients_are_uniform_over_classes_and_over_their_pairs():
    """A class with many images of one patient is drawn as often as another."""
    groups, labels = [0] * 30 + [1, 2] + list(range(3, 35)), [0] * 32 + [1] * 32
    index = make_index(groups, label=labels)
    found = class_pairs(index, 60, 1)
    share = (found["group_a"] == "0").mean()
    assert 0.3 < share < 0.7  # 61 of its pairs are eligible, 496 of the other's
    by_patient = {tuple(sorted(pair)) for pair in ids(found.filter(pl.col("group_a") == "0"))}
    assert all(b in ("i0030", "i0031") for _, b in by_patient)


def settings_of(kind, **changes):
    drawn = {"semantic": kind, "also": {}, "mode": "all_consecutive", "order": "order", "same": []}
    return {**drawn, "random": "different_group", "pool": "reuse", "max_pairs": 40, **changes}


@pytest.mark.parametrize("pool_of", ["reuse", "fresh"])
def test_random_pairs_beside_class_pairs_differ_in_class_and_patient(pool_of):
    index = patients_and_classes()
    label = dict(zip(index["image"], index["label"], strict=True))
    patient = dict(zip(index["image"], index["group"], strict=True))
    how = settings_of("class", pool=pool_of)
    found = study_pairs(index, how, "multiclass", list("abc"), 0, "x")
    random = found.filter(pl.col("kind") == "random")
    assert random.height == 40
    for a, b in ids(random):
        assert label[a] != label[b] and patient[a] != patient[b]
    temporal = study_pairs(index, settings_of("temporal"), "multiclass", list("abc"), 0, "x")
    for a, b in ids(temporal.filter(pl.col("kind") == "random")):
        assert patient[a] != patient[b]  # whatever their classes


def test_a_class_of_a_multilabel_study_is_a_combination_of_known_labels():
    a, b = [1, 1, 0, 1, None, None], [0, 0, 1, 0, 1, 1]
    columns = {name: pl.Series(values, dtype=pl.Int8) for name, values in {"A": a, "B": b}.items()}
    index = make_index([0, 1, 2, 0, 4, 5], **columns)
    found = class_pairs(index, 2, 0, ["A", "B"])
    pairs = {tuple(sorted(pair)) for pair in ids(found)}
    assert pairs == {("i0000", "i0001"), ("i0001", "i0003")}


def test_groups_that_are_the_classes_are_no_patients():
    index = make_index([0, 0, 1, 1, 2], label=[5, 5, 7, 7, None])
    assert groups_are_classes(index, ["label"])
    assert class_pair_count(index, ["label"]) == 2
    assert not groups_are_classes(make_index([0, 0, 1, 2], label=[5, 5, 7, 7]), ["label"])


def test_the_kind_that_nobody_says_is_temporal_where_groups_have_visits():
    index = patients_and_classes()
    assert default_kind(index, "multiclass", list("abc")) == "temporal"
    never = index.with_columns(order=pl.lit(None, dtype=pl.Int32))
    assert default_kind(never, "multiclass", list("abc")) == "class"
    # Dates of photos of a class are no visits of anybody.
    by_class = index.with_columns(group=pl.col("label").cast(pl.String))
    assert default_kind(by_class, "multiclass", list("abc")) == "class"
    assert default_kind(index, "multilabel", ["label"]) == "temporal"
    assert default_kind(never, "multilabel", ["label"]) == "class"
    assert default_kind(index.drop("label"), "multilabel", []) == "temporal"


def test_no_class_pair_across_patients_is_refused_by_name():
    index = make_index([0, 0, 1, 1], label=[0, 0, 1, 2])
    with pytest.raises(UserError, match=r"0 class pairs \(one class, different groups\)"):
        class_pairs(index, 1, 0)
    with pytest.raises(UserError, match="no label column 'label'"):
        class_pairs(index.drop("label"), 1, 0)


def test_more_class_pairs_than_one_block_of_draws_keep_their_prefix():
    classes = np.repeat(range(20), 60)
    index = make_index(list(classes), label=classes)
    many = class_pairs(index, 12_000, 5)
    assert len(set(ids(many))) == 12_000
    assert_frame_equal(class_pairs(index, 3_000, 5), many[:3_000])
    assert ids(class_pairs(index, 50, 6)) != ids(many[:50])


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(0, 4), min_size=2, max_size=20).filter(lambda g: len(set(g)) > 1),
    st.integers(0, 2**32),
    st.integers(0, 60),
    st.sampled_from(["different_group", "iid"]),
)
def test_random_pairs_never_repeat_an_image_and_are_nested(groups, seed, fewer, design):
    images = make_index(groups).select("image", "group")
    found = random_pairs(images, 60, seed, design)
    assert found.height == 60
    assert (found["a"] != found["b"]).all()
    if design == "different_group":
        assert (found["group_a"] != found["group_b"]).all()
    group = dict(images.iter_rows())
    assert [group[image] for image in found["b"]] == found["group_b"].to_list()
    assert_frame_equal(random_pairs(shuffled(images), fewer, seed, design), found[:fewer])


def test_independent_random_pairs_meet_within_a_group_as_often_as_chance_says():
    images = make_index([0] * 30 + [1] * 10).select("image", "group")
    found = random_pairs(images, 20_000, 2, "iid")
    expected = (30 * 29 + 10 * 9) / (40 * 39)
    share = (found["group_a"] == found["group_b"]).mean()
    assert share == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 20_000))


def test_random_pairs_draw_an_image_as_often_as_it_is_listed():
    semantic = pl.DataFrame(
        {"a": ["x", "x", "y"], "b": ["z", "w", "v"], "group_a": list("ppr"), "group_b": list("ppr")}
    )
    ends = endpoints(semantic)
    assert sorted(ends["image"]) == sorted("xxyzwv")
    # Of 36 ordered draws 8 repeat an image; 2 * 2 * 4 of the other 28 hold "x".
    found = random_pairs(ends, 20_000, 0, "iid")
    assert set(pool(found)) == set("xyzwv")
    share = ((found["a"] == "x") | (found["b"] == "x")).mean()
    assert share == pytest.approx(16 / 28, abs=0.015)


def test_random_pairs_of_one_group_are_refused():
    images = make_index([0, 0, 0])
    with pytest.raises(UserError, match=r"at least two groups, there is 1.*pairs\.random: iid"):
        random_pairs(images, 1, 0)
    assert random_pairs(images, 5, 0, "iid").height == 5
    with pytest.raises(UserError, match="at least two images"):
        random_pairs(images[:1], 1, 0, "iid")


@given(cohorts, st.integers(0, 2**32), st.data())
def test_a_sample_is_nested_and_depends_on_the_set_of_pairs_only(cohort, seed, data):
    pairs = consecutive(make_index([g for g, _ in cohort]))
    whole = sample(pairs, None, seed)
    assert sorted(ids(whole)) == sorted(ids(pairs))
    count = data.draw(st.integers(0, pairs.height))
    assert_frame_equal(sample(shuffled(pairs), count, seed), whole[:count])


def test_samples_of_two_seeds_differ_and_every_pair_can_come_first():
    pairs = consecutive(make_index([0] * 6))
    assert {ids(sample(pairs, 1, seed))[0] for seed in range(60)} == set(ids(pairs))


def test_asking_for_more_pairs_than_there_are_says_how_many_there_are():
    pairs = consecutive(make_index([0, 0, 0, 1]))
    with pytest.raises(UserError, match=r"2 temporal pairs.* 3 asked.*pairs\.max_pairs"):
        sample(pairs, 3, 0, "temporal")


def test_the_pool_lists_images_once_in_the_order_they_appear():
    frames = [
        pl.DataFrame({"a": ["c", "a"], "b": ["b", "c"]}),
        pl.DataFrame({"a": ["d"], "b": ["a"]}),
    ]
    assert pool(*frames) == ["c", "b", "a", "d"]
    assert pool() == []


def test_pairs_may_be_asked_to_agree_in_a_column() -> None:
    index = pl.DataFrame(
        {
            "image": ["a0", "a1", "a2", "b0", "b1"],
            "group": ["a", "a", "a", "b", "b"],
            "order": [0, 1, 2, 0, 1],
            "position": ["PA", "PA", "AP", None, None],
            "Edema": [0, 1, 1, 0, 0],
        }
    )
    found = semantic_pairs(index, "temporal", "all_consecutive", "order", [], ["position"])
    assert found.select("a", "b").rows() == [("a0", "a1"), ("b0", "b1")]
    settings = ("labeled", "one_per_group", "order", ["Edema"])
    assert semantic_pairs(index, *settings, ["position"])["a"].to_list() == ["b0"]
    assert semantic_pairs(index, *settings)["a"].to_list() == ["a1", "b0"]
    with pytest.raises(UserError, match="no column 'positon': did you mean 'position'"):
        semantic_pairs(index, "temporal", "all_consecutive", "order", [], ["positon"])
