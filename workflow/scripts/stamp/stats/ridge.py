"""Ridge regression with its penalty chosen by leaving one out, for many outcomes at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ALPHAS = np.logspace(-3, 3, 25)
PERMUTE = 31  # a tag that keeps the random streams of one seed apart
BLOCK = 2048  # permutations at once


@dataclass(frozen=True, slots=True)
class Ridge:
    """A fit on columns of unit variance, and what it predicts of a model that it has not seen.

    ``coefficients`` are standardised: standard deviations of y for one of x. ``importance`` is the
    mean loss of R^2 when a column is shuffled. ``loo_r2`` is 1 minus the squared errors of models
    left out, over those of the mean of the others; ``p`` that of as high a value for shuffled y.
    """

    alpha: float
    coefficients: Array
    importance: Array
    r2: float
    loo_r2: float
    p: float


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Squared errors of models left out, as a quadratic form of any outcome y.

    With an intercept and centred columns ``x = U S V'``, the fit of y is ``ybar + U D U' y``, D the
    diagonal of ``s^2 / (s^2 + alpha)``, and leaving one out needs no other fit: its error is
    ``(y_i - yhat_i) / (1 - h_i)`` with the leverage ``h_i = 1/n + (U D U')_ii``. Summed with the
    weights ``w_i = (1 - h_i)^-2``, the squares of a centred y are
    ``w'y^2 - 2 c'D U'W y + c'D U'W U D c`` with ``c = U'y``.
    """

    basis: Array  # U
    weights: Array  # w, [alphas, n]
    cross: Array  # U'W, [alphas, k, n], D before it
    gram: Array  # D U'W U D, [alphas, k, k]

    @classmethod
    def of(cls, x: Array, alphas: Array) -> LeftOut:
        """The form of centred columns x [n, features] at each penalty."""
        u, s, _ = np.linalg.svd(x, full_matrices=False)
        shrunk = s**2 / (s**2 + alphas[:, None])
        leverage = 1 / len(x) + np.einsum("ik,ak->ai", u**2, shrunk)
        weights = (1 - leverage) ** -2
        half = np.einsum("ak,ik,ai->aki", shrunk, u, weights)
        return cls(u, weights, half, np.einsum("aki,il,al->akl", half, u, shrunk))

    def errors(self, y: Array) -> Array:
        """The sums [alphas, outcomes] of centred outcomes y [n, outcomes]."""
        alphas, k, n = self.cross.shape
        c = self.basis.T @ y
        crossed = (self.cross.reshape(-1, n) @ y).reshape(alphas, k, -1)
        inner = (self.gram.reshape(-1, k) @ c).reshape(alphas, k, -1)
        return self.weights @ y**2 + np.einsum("kb,akb->ab", c, inner - 2 * crossed)


def fit(x: Array, y: Array, permutations: int, seed: int, alphas: Array = ALPHAS) -> Ridge:
    """The ridge regression of y [n] on the columns of x [n, features].

    The penalty is the one with the least error on models left out, chosen anew for each shuffled y.
    The importance of a column is exact, not drawn: with residuals r, coefficient b and variance v
    of a centred column, shuffling it raises the mean squared error by ``2 b cov(r, x) + 2 b^2 v``.
    """
    columns = (x - x.mean(axis=0)) / x.std(axis=0)
    centred = (y - y.mean()) / y.std()
    left_out = LeftOut.of(columns, alphas)
    errors = left_out.errors(centred[:, None])[:, 0]
    best = int(errors.argmin())
    alpha = float(alphas[best])
    n = len(y)
    gram = columns.T @ columns + alpha * np.eye(columns.shape[1])
    coefficients = np.linalg.solve(gram, columns.T @ centred)
    residuals = centred - columns @ coefficients
    importance = 2 * coefficients * (columns.T @ residuals) / n + 2 * coefficients**2
    blind = n * (n / (n - 1)) ** 2  # squared errors of the mean of the others
    rng = np.random.default_rng([seed, PERMUTE])
    better = 0
    for start in range(0, permutations, BLOCK):
        size = min(BLOCK, permutations - start)
        shuffled = rng.permuted(np.tile(centred, (size, 1)), axis=1).T
        least = left_out.errors(shuffled).min(axis=0)
        better += int(np.count_nonzero(least <= errors[best] * (1 + 1e-9)))
    return Ridge(
        alpha=alpha,
        coefficients=coefficients,
        importance=importance,
        r2=float(1 - np.mean(residuals**2)),
        loo_r2=float(1 - errors[best] / blind),
        p=(1 + better) / (1 + permutations),
    )
