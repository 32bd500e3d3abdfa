"""How much many models agree: in their decisions, and in the order that they put images in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

PAIRS = 20_000


@dataclass(frozen=True, slots=True)
class PackedDecisions:
    """A model's decisions as bits: ``planes`` [P, words] number them, ``taken`` [words] marks them.

    Two decisions are the same where all P bits are. Models compare where they decide on the same
    things in the same order.
    """

    planes: NDArray[np.uint64]
    taken: NDArray[np.uint64]

    @classmethod
    def of(cls, decisions: ArrayLike, kinds: int = 2) -> PackedDecisions:
        """Those of whole numbers below ``kinds``; a number below 0 is no decision."""
        numbers = np.asarray(decisions).ravel()
        taken = numbers >= 0
        planes = range(max(1, (kinds - 1).bit_length()))
        bits = [_words(taken & ((numbers >> plane) & 1 == 1)) for plane in planes]
        return cls(np.stack(bits), _words(taken))


def _words(bits: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Bits packed into whole words, zeros after the last."""
    packed = np.packbits(bits)
    return np.pad(packed, (0, -len(packed) % 8)).view(np.uint64)


def shared(models: Sequence[PackedDecisions]) -> tuple[Array, Array]:
    """How many decisions two models share, and how many both have taken: two arrays [M, M]."""
    planes = np.stack([one.planes for one in models])
    taken = np.stack([one.taken for one in models])
    whole = bool((taken == taken[0]).all())  # the usual case: all have decided on the same
    same, both = np.zeros((2, len(models), len(models)))
    for i in range(len(models)):
        apart = np.bitwise_or.reduce(planes[i:] ^ planes[i], axis=1)
        common = taken[:1] if whole else taken[i:] & taken[i]
        both[i, i:] = both[i:, i] = _count(common)
        same[i, i:] = same[i:, i] = both[i, i:] - _count(apart if whole else common & apart)
    return same, both


def _count(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The number of ones in each row."""
    return np.bitwise_count(words).sum(axis=1, dtype=np.uint64)


def agreements(models: Sequence[PackedDecisions]) -> Array:
    """Share of decisions on which two models agree [M, M], of those that both have taken.

    Of class numbers one per image, or of (image, class) decisions of 0 and 1 (Hamming agreement).
    NaN where there is no such decision.
    """
    same, both = shared(models)
    with np.errstate(invalid="ignore"):
        return same / both


def random_pairs(n: int, pairs: int = PAIRS, seed: int = 0) -> tuple[Rows, Rows]:
    """Random pairs of different images out of n, as two arrays of row numbers."""
    rng = np.random.default_rng([seed, 0xC0])
    first = rng.integers(n, size=pairs)
    return first, (first + rng.integers(1, max(2, n), size=pairs)) % n


def packed_order(scores: ArrayLike, pairs: tuple[Rows, Rows]) -> list[PackedDecisions]:
    """For each class of scores [n, C], which image of each pair scores higher; ties are open.

    Scores may be ranks. A class that the model has no score for (NaN) has no order.
    """
    z = np.asarray(scores)
    a, b = z[pairs[0]], z[pairs[1]]
    above, below = a > b, a < b
    columns = range(z.shape[1])
    return [
        PackedDecisions(_words(above[:, c])[None], _words(above[:, c] | below[:, c]))
        for c in columns
    ]


def concordances(models: Sequence[Sequence[PackedDecisions]]) -> Array:
    """``(tau_b + 1) / 2`` of two models' orders [M, M], the mean over classes.

    The share of pairs of images that two models put in the same order: to AUROC, which is the
    share of pairs that a model puts in the right order, what agreement is to accuracy. Kendall's
    tau is over the pairs of :func:`packed_order`: where both models order b pairs, s of them the
    same way, and one alone orders n of them, ``tau_b = (2 s - b) / sqrt(n_i n_j)``. Classes that
    one of the two has no order of are left out; NaN where no class is left.
    """
    total = np.zeros((len(models), len(models)))
    known = np.zeros_like(total)
    for c in range(len(models[0])):
        same, both = shared([one[c] for one in models])
        ordered = np.sqrt(np.diag(both))
        scale = np.outer(ordered, ordered)
        usable = scale > 0
        tau = np.divide(2 * same - both, scale, out=np.zeros_like(total), where=usable)
        total += np.where(usable, (tau + 1) / 2, 0)
        known += usable
    with np.errstate(invalid="ignore"):
        return total / known
