"""What a profile is made from: the pool's outputs, labels and pairs, and extra outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from stamp.core.artifacts import read_json
from stamp.data.views import labels as read_labels
from stamp.inference.extra_outputs.manifest import NotAvailable, read_output
from stamp.inference.outputs import Outputs, present
from stamp.scoring.bootstrap import PairDistances, stamp_interval
from stamp.scoring.pool_pairs import PoolPairs, pair_rows
from stamp.scoring.score import ScoreSettings, outputs_of
from stamp.scoring.stamp import health, probabilities, squared_distances, stamp

Rows = tuple[np.ndarray, np.ndarray]
CONSTANT = "the outputs are nearly constant"


@dataclass(frozen=True, slots=True)
class ExtraOutputs:
    """The extra outputs of one model over images of the source view, as rows of the pool."""

    manifest: str | None
    images: list[str]  # of the source view
    pool: np.ndarray  # which rows of the source view are the pool's
    there: np.ndarray  # which classes the model has an output for
    task: str
    temperature: float

    def arrays(self, kind: str) -> dict[str, np.ndarray]:
        """The arrays of one kind, or ``NotAvailable``."""
        if self.manifest is None:
            raise NotAvailable("no extra outputs were made")
        return read_output(self.manifest, kind, self.images)

    def note(self, kind: str, name: str) -> str:
        """What the manifest says of a part of a kind, such as why a network has no taps."""
        entry = read_json(self.manifest)["extra_outputs"].get(kind, {}) if self.manifest else {}
        return entry.get(name, "")

    def outputs(self, kind: str) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Rows of the pool, the outputs on them [..., n, C] at the temperature, and all arrays."""
        found = self.arrays(kind)
        return self.rows(found["rows"]), self.probabilities(kind, found["logits"]), found

    def probabilities(self, kind: str, logits: np.ndarray) -> np.ndarray:
        """A kind's logits [..., C] as outputs at the temperature, over the classes there are."""
        logits = logits[..., self.there].astype(np.float64)
        if not np.isfinite(logits).all():
            raise NotAvailable(f"the extra output '{kind}' is not finite")
        p = probabilities(logits.reshape(-1, logits.shape[-1]), self.task, self.temperature)
        return p.reshape(logits.shape)

    def rows(self, source: np.ndarray) -> np.ndarray:
        """Row numbers of the source view as row numbers of the pool."""
        if not self.pool[source].all():
            raise ValueError("a pass has rows that are not in the pool")
        return (np.cumsum(self.pool) - 1)[source]


@dataclass(frozen=True, slots=True)
class ProfileInputs:
    """One model's outputs on the pool, and how the study scores.

    ``p`` are probabilities at the study's temperature, over the classes that the model has an
    output for; ``order`` is what makes two images of a group consecutive.
    """

    rows: pl.DataFrame
    p: np.ndarray
    labels: np.ndarray
    pairs: pl.DataFrame
    design: ScoreSettings
    order: str
    extra_outputs: ExtraOutputs
    source: Outputs  # of the whole view
    options: Mapping[str, Any] = field(default_factory=dict)  # what only one profile takes

    @classmethod
    def of(
        cls,
        source: Outputs,
        pairs: pl.DataFrame,
        design: ScoreSettings,
        order: str,
        temperature: float,
        manifest: str | None,
    ) -> ProfileInputs:
        """The inputs of a model's profiles from its outputs on the source view."""
        pool = source.only("pool")
        extra_outputs = ExtraOutputs(
            manifest,
            source.rows["image"].to_list(),
            (source.rows["role"] == "pool").to_numpy(),
            present(pool.logits),
            design.task,
            temperature,
        )
        truth = read_labels(pool.rows, design.task, design.classes, "profile")
        return cls(
            pool.rows,
            outputs_of(pool, design, temperature),
            truth,
            pairs,
            design,
            order,
            extra_outputs,
            source,
        )

    @property
    def groups(self) -> np.ndarray:
        """A number for the group of each row, of its class in a study of class pairs."""
        return self._pool_pairs.groups

    @property
    def _pool_pairs(self) -> PoolPairs:
        return self.design.pool_pairs(self.rows, self.pairs)

    @property
    def constant(self) -> bool:
        """Whether the outputs are too nearly constant for a score."""
        return health(self.p, float(self.random_distances().mean())).degenerate

    @property
    def total(self) -> float:
        """AV by the study's own estimator."""
        if self.design.estimator != "exact":
            return float(self.random_distances().mean())
        return self._pool_pairs.exact(self.p, self.design.semantic).value()[1]

    def ends(self, kind: str) -> Rows:
        """The rows of the pairs of one kind that scores use."""
        chosen = self.pairs.filter(pl.col("kind") == kind).head(self.design.number)
        return pair_rows(chosen, self.rows["image"])

    def units(self, ends: Rows) -> Rows:
        """What the bootstrap resamples, for both ends of pairs: groups, or images."""
        units = self._pool_pairs.units
        return units[ends[0]], units[ends[1]]

    def random_distances(self, outputs: np.ndarray | None = None) -> np.ndarray:
        """The squared distances of the study's random pairs, of these outputs or the model's."""
        return squared_distances(self.p if outputs is None else outputs, *self.ends("random"))

    def scored(self, distances: np.ndarray, ends: Rows, random: np.ndarray) -> dict[str, Any]:
        """STAMP of squared distances against the drawn random pairs, with its interval.

        This is the sampled estimator, whatever that of the study's headline.
        """
        value = float(stamp(distances.mean(), random.mean()))
        found = stamp_interval(
            PairDistances(distances, *self.units(ends)),
            PairDistances(random, *self.units(self.ends("random"))),
            value,
            self.design.bootstrap,
        )
        return {"value": value, "low": found.low, "high": found.high, "n": len(distances)}
