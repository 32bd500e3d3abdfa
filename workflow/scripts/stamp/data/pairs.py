"""Which images are compared: semantic pairs within a group or class, random pairs across them.

A pairs frame has the columns ``a``, ``b`` (image ids), ``group_a``, ``group_b``; that of a study
also has the ``kind``. For class pairs, and the random pairs beside them, a group is a class; for
all others it is the index's ``group``. Every sample is a fixed random order of which a smaller
count is a prefix, so that a smaller number of pairs needs no other image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stamp.core.errors import UserError, suggest
from stamp.core.progress import note
from stamp.data.views import label_columns

KINDS = ("temporal", "labeled", "changed")
MODES = ("all_consecutive", "one_per_group")
ORDERS = ("order", "image")
DESIGNS = ("different_group", "iid")

# Tags that keep the random streams of one seed apart.
_SAMPLE, _CLASS, _RANDOM = 1, 2, 3
_FIRST_BLOCK = 4096
_MOST_DRAWS = 1 << 26

Indices = NDArray[np.int64]


def study_pairs(
    rows: pl.DataFrame,
    settings: Mapping[str, Any],
    task: str,
    classes: Sequence[str],
    seed: int,
    where: str,
) -> pl.DataFrame:
    """All pairs of a study with their ``kind``, from the index rows that pairs may use.

    The kind of the headline score comes first, random pairs last.
    """
    columns = label_columns(task, classes)
    by_visit = settings["order"] == "order" and settings["semantic"] != "class"
    if by_visit and (undated := rows["order"].null_count()):
        note(f"{undated} of {rows.height} images without a visit are in no temporal pair")
    wanted = {settings["semantic"]: settings["max_pairs"]}
    wanted |= {kind: count for kind, count in settings["also"].items() if kind not in wanted}
    try:
        parts = {
            kind: _pairs_of_kind(rows, kind, count, settings, columns, seed)
            for kind, count in wanted.items()
        }
        reused = parts[settings["semantic"]] if settings["pool"] == "reuse" else None
        images = random_images(rows, settings["semantic"], columns, reused)
        parts["random"] = random_pairs(images, settings["max_pairs"], seed, settings["random"])
    except UserError as mistake:
        raise UserError(f"{where}: {mistake}") from None
    return pl.concat(part.with_columns(kind=pl.lit(kind)) for kind, part in parts.items())


def _pairs_of_kind(
    rows: pl.DataFrame,
    kind: str,
    count: int,
    settings: Mapping[str, Any],
    columns: Sequence[str],
    seed: int,
) -> pl.DataFrame:
    """``count`` semantic pairs of one kind, in their fixed order."""
    if kind == "class":
        return class_pairs(rows, count, seed, columns)
    mode, order, same = settings["mode"], settings["order"], settings["same"]
    return sample(semantic_pairs(rows, kind, mode, order, columns, same), count, seed, kind)


def semantic_pairs(
    index: pl.DataFrame,
    kind: str,
    mode: str,
    order: str,
    classes: Sequence[str],
    same: Sequence[str] = (),
) -> pl.DataFrame:
    """Consecutive pairs of one kind: ``temporal`` (all), ``labeled`` or ``changed``.

    Pairs whose images differ in a column of ``same`` (such as the position of the patient) are
    left out.

    Labels are filtered before one pair per group is taken: with ``one_per_group`` the labeled pool
    holds the first consecutive pair *with identical labels* of each group that has one. This is
    the rule that gives the 13,302 temporal and 9,927 labeled pairs of NIH ChestX-ray14 in file
    name order.
    """
    _require("pairs.semantic", kind, KINDS)
    _require("pairs.mode", mode, MODES)
    pairs = consecutive(index, "all_consecutive", order)
    if same:
        pairs = pairs.filter(_agree(pairs, index, same))
    if kind == "labeled":
        pairs = labeled(pairs, index, classes)
    elif kind == "changed":
        pairs = changed(pairs, index, classes)
    return pairs if mode == "all_consecutive" else _first_of_group(pairs)


def consecutive(
    index: pl.DataFrame, mode: str = "all_consecutive", order: str = "order"
) -> pl.DataFrame:
    """Pairs of consecutive images of one group, by visit (``order``) or by file name (``image``).

    Visits with the same number follow each other by image id. Images without a visit are left out,
    unless none has one, which is a mistake. ``one_per_group`` keeps the first pair of each group.
    """
    _require("pairs.mode", mode, MODES)
    _require("pairs.order", order, ORDERS)
    if order == "order":
        dated = index.filter(pl.col("order").is_not_null())
        if index.height and not dated.height:
            raise UserError(
                f"none of {index.height} images has a visit number, first '{index['image'][0]}': "
                "fill the index's 'order' column or set pairs.order: image"
            )
        index = dated
    keys = ["group", "image"] if order == "image" else ["group", "order", "image"]
    pairs = (
        index.select(sorted(set(keys)))
        .sort(keys)
        .select(
            a="image",
            b=pl.col("image").shift(-1),
            group_a="group",
            group_b=pl.col("group").shift(-1),
        )
        .filter(pl.col("group_a") == pl.col("group_b"))
    )
    return pairs if mode == "all_consecutive" else _first_of_group(pairs)


def labeled(pairs: pl.DataFrame, index: pl.DataFrame, classes: Sequence[str]) -> pl.DataFrame:
    """The pairs whose images carry identical labels; an unknown label equals an unknown label."""
    return pairs.filter(_same_labels(pairs, index, classes))


def changed(pairs: pl.DataFrame, index: pl.DataFrame, classes: Sequence[str]) -> pl.DataFrame:
    """The pairs whose images differ in at least one label: the complement of ``labeled``."""
    return pairs.filter(~_same_labels(pairs, index, classes))


def default_kind(rows: pl.DataFrame, task: str, classes: Sequence[str]) -> str:
    """The kind of semantic pairs where nobody says one, by what an index has.

    ``temporal`` where it has groups, such as patients, with several visits; else ``class``.
    """
    visited = rows.filter(pl.col("order").is_not_null())["group"]
    by_patient = not groups_are_classes(rows, label_columns(task, classes))
    return "temporal" if by_patient and visited.is_duplicated().any() else "class"


def class_codes(rows: pl.DataFrame, columns: Sequence[str]) -> pl.Series:
    """A text for the class of each row, null where a label is unknown.

    The class is the value of the one label column, or, for several columns, the combination of
    their values: two images are of one class where all of their labels are known and equal.
    """
    if not columns:
        raise UserError("class pairs need labels: the list of classes is empty")
    for name in columns:
        if name not in rows.columns:
            raise UserError(f"class pairs: no label column '{name}': {suggest(name, rows.columns)}")
    texts = [pl.col(name).cast(pl.String) for name in columns]
    return rows.select(pl.concat_str(texts, separator=",").alias("class")).to_series()


def groups_are_classes(rows: pl.DataFrame, columns: Sequence[str]) -> bool:
    """Whether the index's groups are the classes themselves, and not patients or the like.

    They are where the labeled images of each class are one group, and those of each group one
    class.
    """
    if not columns or not set(columns) <= set(rows.columns):
        return False
    both = rows.select("group", class_codes(rows, columns)).drop_nulls("class")
    cells = both.unique()
    return len(cells) == both["class"].n_unique() == both["group"].n_unique()


def by_class(rows: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """The labeled images in order of class, with the class as ``group``, and their ``unit``.

    The unit is the index's group (a patient): two images of one unit are no class pair, and no
    random pair beside class pairs. Where the groups are the classes, each image is its own unit.
    """
    own = groups_are_classes(rows, columns)
    found = rows.with_columns(class_codes(rows, columns), unit="image" if own else "group")
    found = found.drop_nulls("class").sort(*columns, "image")
    return found.select("image", group="class", unit="unit")


def class_pair_count(rows: pl.DataFrame, columns: Sequence[str]) -> int:
    """How many class pairs some rows yield."""
    images = by_class(rows, columns)
    of_units, of_both = _pair_count(images.select("unit")), _pair_count(images.drop("image"))
    return (of_units - of_both) // 2


def class_pairs(
    index: pl.DataFrame, count: int, seed: int, columns: Sequence[str] = ("label",)
) -> pl.DataFrame:
    """``count`` pairs of one class each: a uniform class, then two of its images.

    The images are of different units (see :func:`by_class`): two images of one patient are never
    paired. Only classes with such a pair take part, and no two images are paired twice (a repeated
    draw is dropped). The first n pairs are those of ``class_pairs(index, n, seed)``.
    """
    available = class_pair_count(index, columns)
    if available < count:
        raise UserError(
            f"{available} class pairs (one class, different groups) are eligible, {count} asked: "
            "lower pairs.max_pairs or use a split with more labeled images per class"
        )
    rows = by_class(index, columns)
    rows = rows.filter(pl.col("unit").n_unique().over("group") >= 2)
    groups, units = rows["group"].rle_id().to_numpy(), rows["unit"].rank("dense").to_numpy()
    starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]]) if len(groups) else np.array([])
    sizes = np.diff(np.r_[starts, len(groups)]).astype(np.int64)
    return _frame(rows, *_distinct_class_draws(starts.astype(np.int64), sizes, units, count, seed))


def endpoints(pairs: pl.DataFrame) -> pl.DataFrame:
    """Both images of every pair with their groups, repeats kept: the pool that random pairs reuse.

    Random pairs drawn from it have the image marginal of the semantic pairs and need no image
    that the semantic pairs do not need already.
    """
    ends = [pairs.select(image=end, group=f"group_{end}") for end in ("a", "b")]
    return pl.concat(ends)


def random_images(
    rows: pl.DataFrame, kind: str, columns: Sequence[str], reused: pl.DataFrame | None
) -> pl.DataFrame:
    """The images that random pairs beside one kind of semantic pairs are drawn from.

    All of ``rows``, or the ends of the ``reused`` pairs; beside class pairs with their class as
    ``group`` and their ``unit``.
    """
    images = by_class(rows, columns) if kind == "class" else rows.select("image", "group")
    if reused is None:
        return images
    ends = endpoints(reused).select("image")
    return ends.join(images, on="image", how="left", maintain_order="left")


def random_pairs(
    images: pl.DataFrame, count: int, seed: int, design: str = "different_group"
) -> pl.DataFrame:
    """``count`` pairs of two independent uniform draws from the rows of ``images``.

    ``images`` has the columns ``image`` and ``group``; a row that occurs twice is drawn twice as
    often (``endpoints``). A pair never holds one image twice; ``different_group`` also redraws
    pairs of one group, and of one ``unit`` where there is this column; ``iid`` keeps them. The
    first n pairs are those of count n.
    """
    _require("pairs.random", design, DESIGNS)
    rows = images.sort("image", "group")
    apart = ["image"]
    if design == "different_group":
        apart += [name for name in ("group", "unit") if name in images.columns]
    if count and not _pair_count(rows.select(apart)):
        what = "images" if design == "iid" else " and ".join(f"{name}s" for name in apart[1:])
        number = rows[apart[0 if design == "iid" else 1]].n_unique()
        raise UserError(
            f"random pairs need at least two {what}, there is {number}: use a larger split"
            + ("" if design == "iid" else " or set pairs.random: iid")
        )
    codes = [rows[name].rank("dense").fill_null(0).to_numpy() for name in apart]
    found_a, found_b, found = [], [], 0
    for rng, size in _blocks(seed, _RANDOM):
        if found >= count:
            break
        a, b = rng.integers(0, rows.height, size=(2, size))
        keep = np.all([code[a] != code[b] for code in codes], axis=0)
        found_a.append(a[keep])
        found_b.append(b[keep])
        found += int(keep.sum())
    return _frame(rows, _joined(found_a)[:count], _joined(found_b)[:count])


def sample(
    pairs: pl.DataFrame, count: int | None, seed: int, kind: str = "semantic"
) -> pl.DataFrame:
    """The first ``count`` pairs (None: all) of a random order fixed by the seed and the pairs.

    The order of rows in ``pairs`` does not matter, a smaller count is a prefix, and no pair is
    drawn twice: fewer pairs than asked is a mistake of the study, never mended by resampling.
    """
    if count is not None and pairs.height < count:
        raise UserError(
            f"{pairs.height} {kind} pairs are eligible, {count} asked: lower pairs.max_pairs or "
            "make more eligible (pairs.mode: all_consecutive, a larger split)"
        )
    ordered = pairs.sort("a", "b")
    chosen = np.random.default_rng([seed, _SAMPLE]).permutation(ordered.height)[:count]
    return ordered[chosen]


def pool(*pairs: pl.DataFrame) -> list[str]:
    """The distinct images of the pairs in the order in which they first appear, row by row."""
    ends = [np.stack([frame["a"].to_numpy(), frame["b"].to_numpy()], axis=1) for frame in pairs]
    return list(dict.fromkeys(np.concatenate(ends).ravel().tolist())) if ends else []


def _distinct_class_draws(
    starts: Indices, sizes: Indices, units: Indices, count: int, seed: int
) -> tuple[Indices, Indices]:
    """Row numbers of the first ``count`` distinct draws of two images of a uniform class."""
    codes, rows = np.empty(0, dtype=np.int64), len(units)
    drawn = 0
    for rng, size in _blocks(seed, _CLASS):
        if len(codes) >= count:
            break
        if drawn > _MOST_DRAWS:
            raise UserError(
                f"{len(codes)} distinct class pairs came of {drawn} draws, {count} asked: "
                "lower pairs.max_pairs, the small classes are used up"
            )
        group = rng.integers(0, len(sizes), size=size)
        first, second = _two_images(rng, starts[group], sizes[group])
        while len(same := np.flatnonzero(units[first] == units[second])):
            again = group[same]
            first[same], second[same] = _two_images(rng, starts[again], sizes[again])
        low, high = np.minimum(first, second), np.maximum(first, second)
        codes = np.concatenate([codes, low * rows + high])
        codes = codes[np.sort(np.unique(codes, return_index=True)[1])]
        drawn += size
    return codes[:count] // rows, codes[:count] % rows


def _two_images(
    rng: np.random.Generator, starts: Indices, sizes: Indices
) -> tuple[Indices, Indices]:
    """Two different rows of each class, uniform among its rows."""
    first = rng.integers(0, sizes)
    second = rng.integers(0, sizes - 1)
    second += second >= first
    return starts + first, starts + second


def _blocks(seed: int, tag: int) -> Iterator[tuple[np.random.Generator, int]]:
    """A generator and a number of draws per block, doubling: draws never depend on need."""
    size = _FIRST_BLOCK
    for block in range(1 << 30):
        yield np.random.default_rng([seed, tag, block]), size
        size = min(2 * size, 1 << 22)


def _pair_count(rows: pl.DataFrame) -> int:
    """How many ordered pairs of rows differ in every column, by inclusion and exclusion."""
    found = 0
    for number in range(rows.width + 1):
        for names in combinations(rows.columns, number):
            sizes = rows.group_by(names).len()["len"] if names else pl.Series([rows.height])
            found += (-1) ** number * int((sizes.cast(pl.Int64) ** 2).sum())
    return found


def _joined(parts: list[Indices]) -> Indices:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _frame(rows: pl.DataFrame, a: Indices, b: Indices) -> pl.DataFrame:
    image, group = rows["image"], rows["group"]
    return pl.DataFrame({"a": image[a], "b": image[b], "group_a": group[a], "group_b": group[b]})


def _first_of_group(pairs: pl.DataFrame) -> pl.DataFrame:
    return pairs.unique(subset="group_a", keep="first", maintain_order=True)


def _same_labels(pairs: pl.DataFrame, index: pl.DataFrame, classes: Sequence[str]) -> pl.Series:
    if absent := [name for name in classes if name not in index.columns]:
        raise UserError(
            f"the index has no label column '{absent[0]}': {suggest(absent[0], index.columns)}"
        )
    if not classes:
        raise UserError("labeled pairs need at least one class: the study's class list is empty")
    return _agree(pairs, index, classes)


def _agree(pairs: pl.DataFrame, index: pl.DataFrame, columns: Sequence[str]) -> pl.Series:
    """Whether both images of each pair have the same values, unknown equal to unknown."""
    for name in columns:
        if name not in index.columns:
            raise UserError(f"pairs.same: no column '{name}': {suggest(name, index.columns)}")
    known = index.select("image", *columns)
    ends = [
        pairs.select(image=end).join(known, on="image", how="left", maintain_order="left")
        for end in ("a", "b")
    ]
    same = [ends[0][name].eq_missing(ends[1][name]).alias(name) for name in columns]
    return pl.DataFrame(same).select(pl.all_horizontal(pl.all())).to_series()


def _require(key: str, value: str, options: Sequence[str]) -> None:
    if value not in options:
        raise UserError(f"unknown {key} '{value}': {suggest(value, options)}")
