"""A job of extra inference outputs: one model, the kinds that are wanted, and what decides them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stamp.core.artifacts import read_json, write_json
from stamp.inference.extra_outputs.extraction import Images, Model, make_all
from stamp.inference.extra_outputs.manifest import PRECOMPUTED, digests
from stamp.inference.logits import card, load_named

DECIDES = ("load", "versions", "classes", "seed", "code")  # beside weights, images and pixels


@dataclass(frozen=True, slots=True)
class Job:
    """The passes of one model on the source or on the targets.

    ``params`` has what decides every kind, see ``DECIDES``; ``device`` is called when the model is
    loaded.
    """

    model: str
    study: str
    view: str
    kinds: Sequence[str]
    params: Mapping[str, Any]
    settings: Mapping[str, Any]
    own_weights: str | None
    more_weights: str | None
    device: Callable[[], str]
    threads: int | None = None

    def run(self, manifest: str | Path, images: Images, records: Sequence[str | Path]) -> None:
        """Make the kinds that are not there already; ``records`` are of the pixel caches."""
        made_from = {
            **{part: self.params[part] for part in DECIDES},
            "weights": digests(self.own_weights, self.more_weights),
            "images": images.digest,
            "pixels": [read_json(record)["pixels"] for record in records],
        }
        metadata = card(self.model, self.view, self.params["load"]["source"])
        load, folder = self._loader(images), Path(manifest).parent
        how = (made_from, self.settings, load, metadata)
        entries = make_all(folder, self.model, self.kinds, *how)
        write_manifest(manifest, self.model, self.study, entries)

    def _loader(self, images: Images) -> Callable[[], Model]:
        def load() -> Model:
            how = (self.settings, self.params["seed"], self.device(), self.threads)
            weights = Path(self.own_weights) if self.own_weights else None
            loaded = load_named(self.model, self.params["load"], self.params["classes"], weights)
            return Model(loaded, len(self.params["classes"]), images, *how)

        return load


def write_manifest(path: str | Path, model: str, study: str, entries: Mapping[str, Any]) -> None:
    """The manifest of a model's passes, an entry a kind."""
    write_json(Path(path), {"model": model, "study": study, "extra_outputs": entries})


def write_none(path: str | Path, model: str, study: str, kinds: Sequence[str]) -> None:
    """The manifest of a model that is a file of outputs, so that nothing can be run."""
    write_manifest(path, model, study, {kind: {"reason": PRECOMPUTED} for kind in kinds})
