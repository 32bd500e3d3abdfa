"""Several models over a streamed target, its images decoded once for as many as run together.

Nothing is written but the parts that each model keeps: its own job takes them up and ends in its
file, as it does after a kill. So each model's predictions remain one job's, and a model that is
added later is the only one that is run, by its own job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stamp.core.errors import UserError
from stamp.core.progress import note
from stamp.inference.logits import Execution, metadata_of
from stamp.inference.predictions import PredictionRun, PredictionTask, StreamedTarget, stream
from stamp.inference.provenance import ModelFiles
from stamp.models.loaders.registry import load_named

# What decides a model's predictions beside its weights, the target and the execution.
DECIDES = ("load", "versions", "classes", "content", "code")


@dataclass(frozen=True, slots=True)
class StreamedModel:
    """A model, the file that its predictions end in, and what they are made from."""

    name: str
    target: Path
    files: ModelFiles
    params: Mapping[str, Any]

    @property
    def made_from(self) -> dict[str, Any]:
        """What decides its predictions."""
        return {
            **{part: self.params[part] for part in DECIDES},
            "weights": list(self.files.digests.values()),
        }

    def run(self, streamed: StreamedTarget, execution: Execution) -> PredictionRun:
        """The loaded model, at the point of the target that it has come to."""
        load, classes = self.params["load"], self.params["classes"]
        loaded = load_named(self.name, load, classes, self.files.weights)
        self.files.check()
        metadata = metadata_of(self.name, streamed.view.stem, load, self.files.card)
        task = PredictionTask(self.target, loaded, metadata, self.made_from)
        return PredictionRun(task, streamed, execution)


def stream_together(
    models: Sequence[StreamedModel], streamed: StreamedTarget, execution: Execution, most: int
) -> None:
    """Run models as far as they have not come, up to ``most`` in each pass over the images.

    One that would be alone in a pass is left to its own job, and so is one that fails: its own job
    says why.
    """
    for group in _groups(models, most):
        if len(group) == 1:
            continue
        mistakes = stream(list(_loaded(group, streamed, execution)), streamed, execution)
        for mistake in mistakes.values():
            note(f"left to its own job: {mistake}")


def _groups(models: Sequence[StreamedModel], most: int) -> Iterator[Sequence[StreamedModel]]:
    """Models in as few groups of at most ``most`` as there can be, all about equally large."""
    count = -(-len(models) // most)
    for number in range(count):
        yield models[number::count]


def _loaded(
    group: Sequence[StreamedModel], streamed: StreamedTarget, execution: Execution
) -> Iterator[PredictionRun]:
    for model in group:
        try:
            yield model.run(streamed, execution)
        except UserError as mistake:
            note(f"left to its own job: {mistake}")
