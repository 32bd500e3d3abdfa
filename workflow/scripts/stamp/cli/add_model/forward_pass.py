"""One forward pass of a new model, or a look into its file of outputs: what it shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stamp.config import plan as config
from stamp.config.zoo import Model
from stamp.core.errors import suggest

IMAGES = 8


@dataclass(frozen=True, slots=True)
class Check:
    """What a forward pass showed, in words, and the hub commit of the weights."""

    words: list[str]
    revision: str | None = None


def check(plan: config.Plan, study: str, key: str) -> Check:
    """One forward pass of a model on some images of the study's source, or on random pixels."""
    model = plan.studies[study].models[key]
    if model.precomputed:
        return Check(_check_file(plan, study, model))
    import torch

    from stamp.inference.logits import Forward, check_outputs
    from stamp.models.loaders.registry import load_model

    classes = plan.studies[study].classes
    loaded = load_model(model.load, classes, None)
    batch, what = _sample(plan, study, model)
    outputs = Forward(loaded, "cpu")(torch.from_numpy(batch))
    check_outputs(outputs, len(classes), key, loaded.missing)
    found = np.delete(outputs, list(loaded.missing), axis=1)
    words = [f"one forward pass on {what}: {described(outputs.shape, found)}"]
    if loaded.missing:
        words.append(f"no output for {', '.join(classes[one] for one in loaded.missing)}")
    words += notes(found, model.load.get("probabilities"), plan.studies[study].task)
    return Check(words, loaded.origin.get("revision"))


def described(shape: Sequence[int], found: np.ndarray) -> str:
    """Shape and range of outputs that are finite."""
    return f"outputs {list(shape)}, all finite, from {found.min():.3g} to {found.max():.3g}"


def notes(found: np.ndarray, told: str | None, task: str) -> list[str]:
    """What looks wrong about outputs that are finite."""
    from stamp.config.precomputed import PROBABILITIES
    from stamp.models.probabilities import looks_like

    words = []
    if told is None and looks_like(found, PROBABILITIES[task]):
        words.append(
            "note: the outputs look like probabilities; if the model ends in a softmax or sigmoid, "
            "give --probabilities"
        )
    if len(found) > 1 and np.ptp(found, axis=0).max() < 1e-6:
        words.append("note: the outputs are the same for every image")
    return words


def unknown_splits(plan: config.Plan, study: str, key: str) -> list[str]:
    """A note for each ``trained_on`` split that the source does not have: it has no effect.

    Before the index is made, only what looks like a misspelt split of the study is noted.
    """
    parts = plan.studies[study]
    known = {parts.calibration.split, *parts.pairs.split}
    known |= {split for split in (parts.source.train, parts.source.val) if split}
    known |= {parts.id.split} if parts.id else set()
    index = Path(plan.results) / "datasets" / parts.source.dataset / "index.parquet"
    if index.is_file():
        import polars as pl

        known |= set(pl.read_parquet(index, columns=["split"])["split"].drop_nulls())
    told = parts.models[key].trained_on or ()
    hints = {one: suggest(one, known) for one in told if one not in known}
    return [
        f"note: trained_on: the source has no split '{one}': {hint}"
        for one, hint in hints.items()
        if index.is_file() or hint.startswith("did you mean")
    ]


def _sample(plan: config.Plan, study: str, model: Model) -> tuple[np.ndarray, str]:
    """uint8 pixels [n, h, w, c] and what they are: images where they are on disk, else random."""
    from stamp.images.pixels import decode

    settings = model.preprocessing
    paths = list(_paths(plan, study))
    if paths:
        border = plan.datasets[plan.studies[study].source.dataset].border
        images = np.stack([decode(path, settings, border) for path in paths])
        return images, f"{len(paths)} images of the source"
    shape = (IMAGES, settings.size, settings.size, settings.channels)
    random = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    return random, f"{IMAGES} images of random pixels (the source's are not there yet)"


def _paths(plan: config.Plan, study: str) -> Iterator[str]:
    """The first images of the source that are on disk, if its index has been made."""
    import polars as pl

    from stamp.data.views import select

    source = plan.studies[study].source_images
    index = Path(plan.results) / "datasets" / source["datasets"][0] / "index.parquet"
    if not index.is_file():
        return
    rows = select(pl.read_parquet(index), {"domains": source["domains"]}, f"study '{study}'")
    for path in rows["path"][:IMAGES]:
        if Path(path).is_file():
            yield path


def _check_file(plan: config.Plan, study: str, model: Model) -> list[str]:
    """Whether a file has outputs of the study's images, as far as these are known yet."""
    import polars as pl

    from stamp.config.precomputed import file_of
    from stamp.models.class_matching import choose, lacking
    from stamp.models.loaders.precomputed import as_logits, logits_of, read

    parts = plan.studies[study]
    words = []
    for view in ("source", *(["id"] if parts.id else []), *parts.targets):
        table = Path(plan.results) / study / "views" / f"{view}.parquet"
        if table.is_file():
            ids = pl.read_parquet(table, columns=["image"])["image"].to_list()
            found = logits_of(model.load, view, ids, parts.classes, parts.task)
            present = found[:, ~np.isnan(found).all(axis=0)]
            words.append(f"view '{view}': {described(found.shape, present)}")
        else:
            path = file_of(model.load, view)
            read_in = read(path, model.load.get("outputs", parts.classes), parts.classes)
            missing = lacking(choose(read_in.names, parts.classes, f"{path}: outputs"))
            as_logits(read_in.values, model.load, parts.task, path, missing)
            words.append(
                f"{path} has outputs {list(read_in.values.shape)}; which of them view '{view}' "
                "needs is not known yet"
            )
    return words
