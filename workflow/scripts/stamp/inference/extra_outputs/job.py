"""The job that makes one model's extra outputs, on the source or on the targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stamp.inference.extra_outputs.manifest import write_manifest
from stamp.inference.extra_outputs.output_files import OutputFiles, OutputKinds
from stamp.inference.extra_outputs.runner import Runner
from stamp.inference.extra_outputs.selected_images import SelectedImages
from stamp.inference.logits import Execution, metadata_of
from stamp.inference.provenance import ModelFiles
from stamp.models.loaders.registry import load_named

# What all kinds depend on beside weights, images and pixels.
DECIDES = ("load", "versions", "classes", "seed", "code", "numerics")


@dataclass(frozen=True, slots=True)
class ExtraOutputsJob:
    """One model, one view (the source, or all targets), and the kinds that are wanted.

    ``known`` says how each kind is made. ``params`` has what decides every kind, see ``DECIDES``.
    ``files`` are those that the model is read from. ``execution`` is called when the model is
    loaded.
    """

    model: str
    study: str
    view: str
    kinds: Sequence[str]
    known: OutputKinds
    params: Mapping[str, Any]
    settings: Mapping[str, Any]
    files: ModelFiles
    execution: Callable[[], Execution]

    def run(self, manifest: str | Path, images: SelectedImages, pixels: Sequence[str]) -> None:
        """Make the kinds that are not there already, and write the manifest of all.

        ``pixels`` are the digests of what the pixels of each view are made from.
        """
        made_from = {
            **{part: self.params[part] for part in DECIDES},
            "weights": list(self.files.digests.values()),
            "images": images.digest,
            "pixels": list(pixels),
        }
        metadata = metadata_of(self.model, self.view, self.params["load"], self.files.card)
        folder = Path(manifest).parent
        files = OutputFiles(folder, self.model, made_from, self.settings, metadata, self.known)
        entries = files.make(self.kinds, lambda: self._load(images))
        write_manifest(manifest, self.model, self.study, entries, self.files.card)

    def _load(self, images: SelectedImages) -> Runner:
        execution, classes = self.execution(), self.params["classes"]
        execution.prepare()
        loaded = load_named(self.model, self.params["load"], classes, self.files.weights)
        self.files.check()
        seed, settings = self.params["seed"], self.settings
        return Runner(loaded, len(classes), images, settings, seed, execution)
