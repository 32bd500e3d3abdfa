"""Random or all orders of a few values, for permutation tests."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from stamp.stats.ranks import Array

CHUNK = 1 << 15  # numbers held at once by a resampling loop: few enough for the cache
PERMUTE = 1  # a tag that keeps the random streams of one seed apart


def permutation_method(n: int, permutations: int) -> str:
    """How a p is found: "exact" where all n! orders are no more than the permutations asked for."""
    return "exact" if n <= 20 and math.factorial(n) <= permutations else "monte-carlo"


def shuffles(codes: np.ndarray, permutations: int, seed: int) -> Iterator[np.ndarray]:
    """Blocks [rows, n] of permuted codes (whole numbers from 0): all n! orders where those are few.

    Random orders come from sorting words with random high bits and a code in the low ones, which
    numpy does with vector instructions: twice as fast as ``Generator.permuted``.
    """
    if permutations < 1:
        raise ValueError(f"{permutations} permutations: at least 1 is needed")
    rows = max(2, CHUNK // codes.size // 2 * 2)
    if permutation_method(codes.size, permutations) == "exact":
        orders = itertools.permutations(codes.tolist())
        while block := list(itertools.islice(orders, rows)):
            yield np.array(block)
        return
    rng = np.random.default_rng([seed, PERMUTE])
    low = (1 << int(codes.max()).bit_length()) - 1
    word = np.dtype("<u4" if low < 1024 else "<u8")
    # This common first shuffle makes every row uniform even where the random bits of two words tie.
    codes = np.tile(rng.permutation(codes).astype(word), (rows, 1))
    for start in range(0, permutations, rows):
        size = min(rows, permutations - start)
        words = _random_words(size * codes.shape[1], word, rng).reshape(size, -1)
        words &= word.type(np.iinfo(word).max - low)
        words |= codes[:size]
        words.sort(axis=1)
        words &= word.type(low)
        yield words


def _random_words(count: int, word: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """``count`` words of random bits; 32-bit words come two from a draw."""
    draws = -(-count * word.itemsize // 8)
    bits = rng.integers(1 << 64, size=draws, dtype=np.uint64).astype("<u8", copy=False)
    return bits.view(word)[:count]


def p_value(extreme: ArrayLike, used: int, method: str) -> Array:
    """The p of so many permutations at least as extreme as what was observed.

    Count / n! where all orders were enumerated, (1 + count) / (B + 1) for B random ones (Davison &
    Hinkley 1997, 4.2).
    """
    count = np.asarray(extreme, dtype=np.float64)
    return count / used if method == "exact" else (1 + count) / (used + 1)
