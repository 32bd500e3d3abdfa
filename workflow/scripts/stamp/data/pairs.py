"""Which images are compared: semantic pairs within a group, random pairs across groups.

A pairs frame has the columns ``a``, ``b`` (image ids), ``group_a``, ``group_b``; that of a study
also has the ``kind``. Every sample is a fixed random order of which a smaller count is a prefix, so
that a smaller number of pairs needs no other image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stamp.core.errors import UserError, suggest
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
    wanted = {settings["semantic"]: settings["max_pairs"]}
    wanted |= {kind: count for kind, count in settings["also"].items() if kind not in wanted}
    try:
        parts = {
            kind: _pairs_of_kind(rows, kind, count, settings, columns, seed)
            for kind, count in wanted.items()
        }
        semantic = parts[settings["semantic"]]
        images = endpoints(semantic) if settings["pool"] == "reuse" else rows
        images = images.select("image", "group")
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
        return class_pairs(rows, count, seed)
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

    Visits with the same number follow each other by image id. ``one_per_group`` keeps the first
    pair of each group.
    """
    _require("pairs.mode", mode, MODES)
    _require("pairs.order", order, ORDERS)
    if order == "order" and (missing := index.filter(pl.col("order").is_null())).height:
        raise UserError(
            f"{missing.height} of {index.height} images have no visit number, first "
            f"'{missing['image'][0]}': fill the index's 'order' column or set pairs.order: image"
        )
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


def class_pairs(index: pl.DataFrame, count: int, seed: int) -> pl.DataFrame:
    """``count`` pairs of one group each: a uniform group, then two of its images.

    Only groups of at least two images take part, and no two images are paired twice (a repeated
    draw is dropped). The first n pairs are those of ``class_pairs(index, n, seed)``.
    """
    rows = index.select("image", "group").filter(pl.col("group").is_not_null())
    rows = rows.sort("group", "image")
    groups = rows["group"].to_numpy()
    starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]]) if len(groups) else np.array([])
    sizes = np.diff(np.r_[starts, len(groups)]).astype(np.int64)
    starts, sizes = starts[sizes >= 2].astype(np.int64), sizes[sizes >= 2]
    available = int((sizes * (sizes - 1) // 2).sum())
    if available < count:
        raise UserError(
            f"{available} class pairs are eligible, {count} asked: "
            "lower pairs.max_pairs or use a split with more images per class"
        )
    return _frame(rows, *_distinct_class_draws(starts, sizes, len(groups), count, seed))


def endpoints(pairs: pl.DataFrame) -> pl.DataFrame:
    """Both images of every pair with their groups, repeats kept: the pool that random pairs reuse.

    Random pairs drawn from it have the image marginal of the semantic pairs and need no image
    that the semantic pairs do not need already.
    """
    ends = [pairs.select(image=end, group=f"group_{end}") for end in ("a", "b")]
    return pl.concat(ends)


def random_pairs(
    images: pl.DataFrame, count: int, seed: int, design: str = "different_group"
) -> pl.DataFrame:
    """``count`` pairs of two independent uniform draws from the rows of ``images``.

    ``images`` has the columns ``image`` and ``group``; a row that occurs twice is drawn twice as
    often (``endpoints``). A pair never holds one image twice; ``different_group`` also redraws
    pairs of one group, ``iid`` keeps them. The first n pairs are those of count n.
    """
    _require("pairs.random", design, DESIGNS)
    rows = images.select("image", "group").sort("image", "group")
    column = "image" if design == "iid" else "group"
    if count and rows[column].n_unique() < 2:
        raise UserError(
            f"random pairs need at least two {column}s, there is {rows[column].n_unique()}: "
            "use a larger split" + ("" if design == "iid" else " or set pairs.random: iid")
        )
    image, group = (rows[c].rank("dense").fill_null(0).to_numpy() for c in ("image", "group"))
    found_a, found_b, found = [], [], 0
    for rng, size in _blocks(seed, _RANDOM):
        if found >= count:
            break
        a, b = rng.integers(0, rows.height, size=(2, size))
        keep = image[a] != image[b]
        if design == "different_group":
            keep &= group[a] != group[b]
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
    starts: Indices, sizes: Indices, rows: int, count: int, seed: int
) -> tuple[Indices, Indices]:
    """Row numbers of the first ``count`` distinct draws of two images of a uniform group."""
    codes = np.empty(0, dtype=np.int64)
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
        first = rng.integers(0, sizes[group])
        second = rng.integers(0, sizes[group] - 1)
        second += second >= first
        low = starts[group] + np.minimum(first, second)
        codes = np.concatenate([codes, low * rows + starts[group] + np.maximum(first, second)])
        codes = codes[np.sort(np.unique(codes, return_index=True)[1])]
        drawn += size
    return codes[:count] // rows, codes[:count] % rows


def _blocks(seed: int, tag: int) -> Iterator[tuple[np.random.Generator, int]]:
    """A generator and a number of draws per block, doubling: draws never depend on need."""
    size = _FIRST_BLOCK
    for block in range(1 << 30):
        yield np.random.default_rng([seed, tag, block]), size
        size = min(2 * size, 1 << 22)


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
