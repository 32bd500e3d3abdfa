"""What a reader must know of the outputs behind a score: how many, whose, and whether rounded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from stamp.inference.outputs import Outputs, present
from stamp.scoring.stamp import SATURATED_SHARE, Array, probabilities

HARD_DISTANCE = 1e-5
_NUMBERS, _SEED = 4, 20_260_101  # of a fingerprint: the same for all models, whatever the study's


@dataclass(frozen=True, slots=True)
class AboutOutputs:
    """Groups and images behind a score, and what the outputs are before any scaling."""

    groups: int  # distinct groups (patients) of the semantic pairs
    images: int  # distinct images of the semantic and the random pairs
    hard: bool  # the outputs are zeros and ones
    fingerprint: list[float]  # equal for equal outputs


def about_outputs(
    pool: Outputs, pairs: pl.DataFrame, kind: str, number: int, task: str
) -> AboutOutputs:
    """What is behind the score of the first ``number`` pairs of a kind."""
    near, far = (pairs.filter(pl.col("kind") == name).head(number) for name in (kind, "random"))
    there = present(pool.logits)
    p = np.zeros(pool.logits.shape)
    p[:, there] = probabilities(pool.logits[:, there], task, 1.0)
    shown = pl.concat([near["a"], near["b"]])
    groups = pool.rows.filter(pl.col("image").is_in(shown.implode()))["group"].n_unique()
    images = pl.concat([shown, far["a"], far["b"]]).n_unique()
    return AboutOutputs(groups, images, is_hard(p), fingerprint(p))


def is_hard(p: Array) -> bool:
    """Whether more than 99 % of the images have outputs of zeros and ones, to within 1e-5."""
    distance = np.abs(p - np.rint(p)).max(axis=1)
    return bool(np.mean(distance < HARD_DISTANCE) > SATURATED_SHARE)


def fingerprint(p: Array) -> list[float]:
    """Four numbers that tell outputs apart: ``sum_ic u_i v_c p_ic / sqrt(n)``, u and v Gaussian.

    u and v are drawn once for a number of images and classes. Outputs that differ by d in the root
    mean square give numbers that differ by about ``d sqrt(C)``, so those of one network that was
    exported twice agree where a digest of the bytes would not.
    """
    rng = np.random.default_rng(_SEED)
    u, v = (rng.standard_normal((size, _NUMBERS)) for size in p.shape)
    found = np.einsum("ik,ck,ic->k", u, v, p, optimize=True) / np.sqrt(len(p))
    return [float(one) for one in found]
