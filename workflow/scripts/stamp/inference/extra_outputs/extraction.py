"""Extra inference outputs of one model: changed pictures, dropout, features, maps, steepness.

They are views of the extraction stage, like a model's logits: made once per model, only where a
metric or an analysis needs them, and shared by all that do. One process makes every kind that is
wanted; each kind goes to a file of its own, batch by batch, so peak memory does not grow with the
number of images. A kind that a model can't give has a reason instead of a file.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.dropout import _DropoutNd

from stamp.config.extra_outputs import KINDS
from stamp.core.array_writer import ArrayWriter
from stamp.core.artifacts import atomic_write, ids_digest, write_json
from stamp.core.errors import UserError
from stamp.core.progress import bar
from stamp.images.augmentations import AUGMENTATIONS, VIEWS, mirror, turn
from stamp.images.pixels import Joined, PixelCache
from stamp.inference.extra_outputs.gradcam import GradCam, dice, top
from stamp.inference.extra_outputs.jacobian import length, spectral_norms
from stamp.inference.extra_outputs.manifest import file_digest, kept, key_of
from stamp.inference.logits import BATCH, Forward, check_outputs
from stamp.models.loaded import Loaded
from stamp.models.loaders.finetune import classifier
from stamp.models.taps import Taps

SMALL_BATCH = 32  # where a batch is held with its activations, or several times over
SMALLEST_BATCH = 4  # where its activations are held together with those of its gradients


class Unavailable(UserError):
    """What a model turns out not to give while it is run."""


Part = tuple[str, np.ndarray, int, int]  # an array's name, rows of it, the first row, the plane


@dataclass(frozen=True, slots=True)
class Images:
    """A view's pictures: their ids, which of them are forwarded, and semantic pairs.

    Of the source, ``rows`` are the first pool images, ``pairs`` two arrays of places in ``rows``
    and ``semantic`` all pairs, as two arrays of rows of the view. All targets' views together are
    one, without pairs.
    """

    cache: PixelCache | Joined
    ids: Sequence[str]
    rows: np.ndarray
    pairs: tuple[np.ndarray, np.ndarray]
    semantic: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(
        cls, cache: PixelCache, view: pl.DataFrame, pairs: pl.DataFrame, semantic: str, count: int
    ) -> Images:
        """The first ``count`` pool images, and the semantic pairs that lie within them.

        The pool is in the order of the pairs, so there are at least half as many pairs as images;
        that many are taken.
        """
        rows = np.flatnonzero((view["role"] == "pool").to_numpy())[:count]
        place = {image: number for number, image in enumerate(view["image"].gather(rows))}
        every = pairs.filter(pl.col("kind") == semantic)
        within = every.filter(
            *(pl.col(end).is_in(list(place)) for end in ("a", "b")),
        ).head(len(rows) // 2)
        ids = view["image"].to_list()
        row = {image: number for number, image in enumerate(ids)}
        return cls(cache, ids, rows, _numbers(within, place), _numbers(every, row))

    @classmethod
    def of_targets(
        cls, caches: Sequence[PixelCache], views: Sequence[pl.DataFrame], count: int, seed: int
    ) -> Images:
        """Up to ``count`` images of every domain of every target, by a hash of seed and image."""
        rows: list[np.ndarray] = []
        ids: list[str] = []
        for view in views:
            names = view["image"].to_list()
            places = pl.Series("place", range(len(ids), len(ids) + len(names)), dtype=pl.Int64)
            order = pl.Series("order", [_number(seed, name, "targets") for name in names])
            table = pl.DataFrame([view["domain"], places, order])
            chosen = table.sort("order").group_by("domain", maintain_order=True).head(count)
            rows.append(np.sort(chosen["place"].to_numpy()))
            ids += names
        empty = np.zeros(0, dtype=int)
        none = (empty, empty)
        return cls(Joined(caches), ids, np.concatenate(rows), none, none)

    @property
    def own_ids(self) -> list[str]:
        """The ids of the rows."""
        return [self.ids[row] for row in self.rows]

    @property
    def digest(self) -> str:
        """A digest of the images and of the pairs."""
        own = self.own_ids
        ends = [own[place] for pair in zip(*self.pairs, strict=True) for place in pair]
        return ids_digest([*self.ids, "", *own, "", *ends])

    @property
    def semantic_digest(self) -> str:
        """A digest of all semantic pairs."""
        return ids_digest(
            [self.ids[row] for pair in zip(*self.semantic, strict=True) for row in pair]
        )


def _numbers(pairs: pl.DataFrame, number: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of pairs as the numbers of their images."""
    a, b = (np.array([number[image] for image in pairs[end]], dtype=int) for end in ("a", "b"))
    return a, b


@dataclass(frozen=True, slots=True)
class Recipe:
    """A kind of pass before it is run: the arrays that come of it, part by part."""

    arrays: Mapping[str, tuple[Any, tuple[int, ...]]]
    parts: Iterator[Part]
    images: int
    forwarded: int
    notes: Mapping[str, str] = field(default_factory=dict)


class Model:
    """A loaded model and the images that it is run on."""

    def __init__(
        self,
        loaded: Loaded,
        classes: int,
        images: Images,
        settings: Mapping[str, Any],
        seed: int,
        device: str,
        threads: int | None = None,
    ):
        if threads is not None:
            torch.set_num_threads(threads)
        self.loaded, self.classes, self.images = loaded, classes, images
        self.settings, self.seed, self.device = settings, seed, device
        self.forward = Forward(loaded, device)
        # logits are kept as precise as they were computed
        self.precision = np.float16 if device == "cuda" else np.float32
        # two of the pictures, to see what the network gives
        self.example = torch.from_numpy(images.cache.take(images.rows[:2])).to(device)

    @property
    def module(self) -> nn.Module:
        return self.forward.module

    def batches(
        self, rows: np.ndarray, size: int = BATCH
    ) -> Iterator[tuple[int, list[str], torch.Tensor]]:
        """Where each batch begins, its image ids and its uint8 pixels on the device."""
        for start in range(0, len(rows), size):
            chosen = rows[start : start + size]
            pixels = torch.from_numpy(self.images.cache.take(chosen)).to(self.device)
            yield start, [self.images.ids[row] for row in chosen], pixels

    def logits(self, pixels: torch.Tensor) -> np.ndarray:
        """Checked logits of uint8 pixels."""
        return self.checked(self.forward(pixels))

    def checked(self, logits: np.ndarray) -> np.ndarray:
        """Logits that can be used, NaN for the classes that the model has not."""
        try:
            check_outputs(logits, self.classes, "", self.loaded.missing)
        except UserError as mistake:
            raise Unavailable(str(mistake).removeprefix("model '': ")) from None
        if self.loaded.missing:
            logits[:, list(self.loaded.missing)] = np.nan
        return logits


def _shape(model: Model, planes: int | None = None) -> tuple[Any, tuple[int, ...]]:
    """Type and shape of logits, of one pass or of several."""
    shape = (len(model.images.rows), model.classes)
    return model.precision, shape if planes is None else (planes, *shape)


def _rows(model: Model) -> Part:
    return "rows", model.images.rows.astype(np.int32), 0, 0


def _announced(model: Model) -> tuple[Any, tuple[int, ...]]:
    return np.int32, (len(model.images.rows),)


# --- features ------------------------------------------------------------------------------------


def _array(values: torch.Tensor | None) -> np.ndarray:
    if values is None:
        raise Unavailable("its layers can't be watched")
    found = values.detach().float().cpu().numpy()
    if found.ndim != 2:
        raise Unavailable(f"the input of its classifier has shape {list(found.shape[1:])}")
    if not np.isfinite(found).all():
        raise Unavailable("its features are not finite")
    return found


def _head(model: Model) -> Taps:
    """Taps of the last linear layer alone, if there is one."""
    if not hasattr(model.module, "get_classifier"):
        raise UserError("its last linear layer is not known")
    classifier(model.module)
    return Taps(model.module, pooled=False)


def _taps(model: Model) -> tuple[Taps, str]:
    """Taps that give what the network has to show, and why there are none between its blocks."""
    head, taps = _head(model), Taps(model.module)
    try:
        with taps:
            model.forward(model.example)
        for name in taps.places:
            _array(taps.pooled.get(name))
    except UserError as mistake:
        return head, str(mistake)
    return taps, ""


def _width(model: Model, taps: Taps) -> dict[str, int]:
    """The width of every tap and of the features, from an example."""
    with taps:
        model.forward(model.example)
    widths = {name: _array(taps.pooled[name]).shape[1] for name in taps.places}
    return {**widths, "features": _array(taps.classifier_input).shape[1]}


def features(model: Model) -> Recipe:
    """What enters the last linear layer, and the pooled taps, of every row of the source view."""
    taps, missing = _taps(model)
    every = np.arange(len(model.images.ids))

    def parts() -> Iterator[Part]:
        for start, _, pixels in model.batches(every):
            with taps:
                model.forward(pixels)
            for name in taps.places:
                yield name, _array(taps.pooled[name]), start, 0
            yield "features", _array(taps.classifier_input), start, 0

    arrays = {
        name: (np.float32, (len(every), width)) for name, width in _width(model, taps).items()
    }
    notes = {"taps": missing} if missing else {}
    return Recipe(arrays, parts(), len(every), len(every), notes)


def targets(model: Model) -> Recipe:
    """What enters the last linear layer, of the images that are forwarded."""
    taps, rows = _head(model), model.images.rows

    def parts() -> Iterator[Part]:
        yield _rows(model)
        for start, _, pixels in model.batches(rows):
            with taps:
                model.forward(pixels)
            yield "features", _array(taps.classifier_input), start, 0

    width = _width(model, taps)["features"]
    arrays = {"features": (np.float32, (len(rows), width)), "rows": _announced(model)}
    return Recipe(arrays, parts(), len(rows), len(rows))


def rotations(model: Model) -> Recipe:
    """The features of the images turned by 90, 180 and 270 degrees."""
    taps, rows = _head(model), model.images.rows

    def parts() -> Iterator[Part]:
        yield _rows(model)
        for start, _, pixels in model.batches(rows):
            for plane, quarters in enumerate((1, 2, 3)):
                with taps:
                    model.forward(turn(pixels, quarters))
                yield "features", _array(taps.classifier_input), start, plane

    width = _width(model, taps)["features"]
    arrays = {"features": (np.float32, (3, len(rows), width)), "rows": _announced(model)}
    return Recipe(arrays, parts(), len(rows), 3 * len(rows))


# --- changed pictures ----------------------------------------------------------------------------


def augmented(name: str) -> Callable[[Model], Recipe]:
    """The recipe of a random change that is drawn from seed and image id."""
    change = AUGMENTATIONS[name]

    def recipe(model: Model) -> Recipe:
        rows = model.images.rows
        arrays = {"logits": _shape(model), "rows": _announced(model)}

        def parts() -> Iterator[Part]:
            yield _rows(model)
            for start, ids, pixels in model.batches(rows):
                yield "logits", model.logits(change(pixels, ids, model.seed)), start, 0

        return Recipe(arrays, parts(), len(rows), len(rows))

    return recipe


def composite(model: Model) -> Recipe:
    """The logits under all changes together, and the features where the model has them."""
    rows, notes = model.images.rows, {}
    arrays = {"logits": _shape(model), "rows": _announced(model)}
    taps: Taps | None = None
    try:
        taps = _head(model)
        arrays["features"] = (np.float32, (len(rows), _width(model, taps)["features"]))
    except UserError as mistake:
        taps, notes["features"] = None, str(mistake)

    def parts() -> Iterator[Part]:
        yield _rows(model)
        for start, ids, pixels in model.batches(rows):
            with taps or nullcontext():
                logits = model.logits(AUGMENTATIONS["composite"](pixels, ids, model.seed))
            yield "logits", logits, start, 0
            if taps is not None:
                yield "features", _array(taps.classifier_input), start, 0

    return Recipe(arrays, parts(), len(rows), len(rows), notes)


def tta(model: Model) -> Recipe:
    """The logits of each fixed view."""
    rows = model.images.rows

    def parts() -> Iterator[Part]:
        yield _rows(model)
        for start, _, pixels in model.batches(rows):
            for plane, view in enumerate(VIEWS.values()):
                yield "logits", model.logits(view(pixels)), start, plane

    arrays = {"logits": _shape(model, len(VIEWS)), "rows": _announced(model)}
    notes = {"views": ", ".join(VIEWS)}
    return Recipe(arrays, parts(), len(rows), len(VIEWS) * len(rows), notes)


# --- dropout -------------------------------------------------------------------------------------


def dropout_layers(module: nn.Module) -> list[nn.Module]:
    """The dropout layers that drop anything; stochastic depth is none of them."""
    return [layer for layer in module.modules() if isinstance(layer, _DropoutNd) and layer.p > 0]


@contextmanager
def dropping(module: nn.Module, head_dropout: float | None = None) -> Iterator[str]:
    """Only the dropout layers in train mode; what is to know of it, if they are not its own.

    Without any, a share ``head_dropout`` of the last linear layer's input is dropped, if given.
    Dropout inside a fused attention follows the attention's own mode and stays off.
    """
    layers, handle, note = dropout_layers(module), None, ""
    if not layers:
        if head_dropout is None:
            raise UserError("it has no dropout layer with p > 0")
        if not hasattr(module, "get_classifier"):
            raise UserError("it has no dropout layer, and its last linear layer is not known")
        note = f"dropout of {head_dropout:g} before the last layer: it has none of its own"

        def drop(layer: nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            return (functional.dropout(inputs[0], head_dropout, training=True), *inputs[1:])

        handle = classifier(module).register_forward_pre_hook(drop)
    try:
        for layer in layers:
            layer.train()
        yield note
    finally:
        for layer in layers:
            layer.eval()
        if handle is not None:
            handle.remove()


def dropout(model: Model) -> Recipe:
    """The logits of several passes with dropout, seeded by the images of each batch."""
    rows, samples = model.images.rows, model.settings["samples"]
    with dropping(model.module, model.settings["head_dropout"]) as told:
        note = told

    def parts() -> Iterator[Part]:
        yield _rows(model)
        devices = [torch.cuda.current_device()] if model.device == "cuda" else []
        for start, ids, pixels in model.batches(rows):
            for plane in range(samples):
                # on again for each pass: between two parts others may use the network
                with (
                    dropping(model.module, model.settings["head_dropout"]),
                    torch.random.fork_rng(devices),
                ):
                    torch.manual_seed(_number(model.seed, ids_digest(ids), "dropout", plane))
                    found = model.logits(pixels)
                yield "logits", found, start, plane

    arrays = {"logits": _shape(model, samples), "rows": _announced(model)}
    notes = {"note": note} if note else {}
    return Recipe(arrays, parts(), len(rows), samples * len(rows), notes)


# --- Grad-CAM ------------------------------------------------------------------------------------


@contextmanager
def differentiating() -> Iterator[None]:
    """What torch has against a network's gradients becomes the reason why there are none."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise UserError(f"gradients can't be taken: {str(error).splitlines()[0]}") from None


def gradcam(model: Model) -> Recipe:
    """The overlap of the maps of a picture and its mirror image, and of a semantic pair's two."""
    rows, (first, second) = model.images.rows, model.images.pairs
    with differentiating():
        cam = GradCam(model.module, model.forward.normalised(model.example))
        cam(model.forward.normalised(model.example))

    def parts() -> Iterator[Part]:
        yield _rows(model)
        masks, classes = [], np.zeros(len(rows), dtype=np.int64)
        for start, _, pixels in model.batches(rows, SMALL_BATCH):
            maps, chosen = cam(model.forward.normalised(pixels))
            mirrored, _ = cam(model.forward.normalised(mirror(pixels)), chosen)
            here = top(maps)
            yield "dice", dice(here, top(mirrored.flip(2))).float().cpu().numpy(), start, 0
            masks.append(np.packbits(here.flatten(1).cpu().numpy(), axis=1))
            classes[start : start + len(pixels)] = chosen.cpu().numpy()
        packed = np.concatenate(masks)
        for start, _, pixels in model.batches(rows[second], SMALL_BATCH):
            place = first[start : start + len(pixels)]
            wanted = torch.from_numpy(classes[place]).to(model.device)
            maps, _ = cam(model.forward.normalised(pixels), wanted)
            there = top(maps).flatten(1).cpu()
            bits = np.unpackbits(packed[place], axis=1, count=there.shape[1])
            overlap = dice(torch.from_numpy(bits.astype(bool)), there)
            yield "pair_dice", overlap.float().numpy(), start, 0

    arrays = {
        "dice": (np.float32, (len(rows),)),
        "pair_dice": (np.float32, (len(first),)),
        "rows": _announced(model),
    }
    return Recipe(arrays, parts(), len(rows), 2 * len(rows) + len(first))


# --- perturbations -------------------------------------------------------------------------------


def _number(*what: Any) -> int:
    """A seed from a hash of what it is for."""
    text = "\0".join(str(part) for part in what)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def noise(
    ids: Sequence[str], shape: Sequence[int], seed: int, number: int, kind: str = "perturbed"
) -> torch.Tensor:
    """Gaussian noise [n, ...] of the ``number``-th perturbation, from seed and image id."""
    drawn = [
        np.random.default_rng(_number(seed, one, kind, number)).standard_normal(
            tuple(shape), dtype=np.float32
        )
        for one in ids
    ]
    return torch.from_numpy(np.stack(drawn))


def perturbed(model: Model) -> Recipe:
    """The logits of x and of x + d_k in the model's own input space, and the norms of the d_k.

    d is Gaussian, rescaled to a share of ``||x||``; logits are of full precision on every device.
    """
    rows, count = model.images.rows, model.settings["perturbations"]
    share = model.settings["perturbation_norm"]

    @torch.inference_mode()
    def outputs(values: torch.Tensor) -> np.ndarray:
        return model.checked(model.module(values).float().cpu().numpy())

    def parts() -> Iterator[Part]:
        yield _rows(model)
        norms = np.zeros((count, len(rows)), dtype=np.float32)
        for start, ids, pixels in model.batches(rows):
            x = model.forward.normalised(pixels)
            yield "base", outputs(x), start, 0
            for plane in range(count):
                d = noise(ids, x.shape[1:], model.seed, plane).to(model.device)
                d *= share * length(x) / length(d)
                norms[plane, start : start + len(ids)] = length(d).flatten().cpu().numpy()
                yield "logits", outputs(x + d), start, plane
        yield "norms", norms, 0, 0

    shape = (len(rows), model.classes)
    arrays = {
        "logits": (np.float32, (count, *shape)),
        "base": (np.float32, shape),
        "norms": (np.float32, (count, len(rows))),
        "rows": _announced(model),
    }
    return Recipe(arrays, parts(), len(rows), (count + 1) * len(rows))


def jacobian(model: Model) -> Recipe:
    """The spectral norm of the Jacobian of the output probabilities in the model's input, at x.

    At the temperature of the study's scores, over the classes that the model has; of full precision
    on every device. The first direction is drawn from seed and image id.
    """
    rows = model.images.rows[: model.settings["jacobian_images"]]
    iterations, task = model.settings["power_iterations"], model.settings["task"]
    there = [number for number in range(model.classes) if number not in model.loaded.missing]
    for parameter in model.module.parameters():
        parameter.requires_grad_(False)

    def outputs(x: torch.Tensor) -> torch.Tensor:
        z = model.module(x).float()[:, there] / model.settings["temperature"]
        return z.softmax(dim=1) if task == "multiclass" else z.sigmoid()

    def norms(ids: Sequence[str], pixels: torch.Tensor, count: int) -> np.ndarray:
        x = model.forward.normalised(pixels)
        start = noise(ids, x.shape[1:], model.seed, 0, "jacobian").to(model.device)
        found = spectral_norms(outputs, x, start, count).cpu().numpy()
        if not np.isfinite(found).all():
            raise Unavailable("its gradients are not finite")
        return found

    with differentiating():
        norms(model.images.own_ids[:2], model.example, 1)

    def parts() -> Iterator[Part]:
        yield "rows", rows.astype(np.int32), 0, 0
        for start, ids, pixels in model.batches(rows, SMALLEST_BATCH):
            yield "norms", norms(ids, pixels, iterations), start, 0

    arrays = {"norms": (np.float32, (len(rows),)), "rows": (np.int32, (len(rows),))}
    notes = {"temperature": str(model.settings["temperature"])}
    return Recipe(arrays, parts(), len(rows), len(rows), notes)


def distances(model: Model) -> Recipe:
    """``||x_a - x_b||^2`` of every semantic pair in the model's input space; nothing is forwarded.

    ``a`` and ``b`` are rows of the source view.
    """
    ends = dict(zip("ab", model.images.semantic, strict=True))

    def parts() -> Iterator[Part]:
        for name, rows in ends.items():
            yield name, rows.astype(np.int32), 0, 0
        both = (model.batches(rows, SMALL_BATCH) for rows in ends.values())
        for (start, _, first), (_, _, second) in zip(*both, strict=True):
            apart = model.forward.normalised(first) - model.forward.normalised(second)
            squared = apart.flatten(1).double().square().sum(dim=1)
            yield "squared", squared.cpu().numpy(), start, 0

    count = len(ends["a"])
    arrays = {
        "squared": (np.float64, (count,)),
        "a": (np.int32, (count,)),
        "b": (np.int32, (count,)),
    }
    return Recipe(arrays, parts(), len(np.union1d(*ends.values())), 0)


# --- all of them ---------------------------------------------------------------------------------

RECIPES: dict[str, Callable[[Model], Recipe]] = {
    "features": features,
    "targets": targets,
    **{name: augmented(name) for name in AUGMENTATIONS if name != "composite"},
    "composite": composite,
    "tta": tta,
    "dropout": dropout,
    "gradcam": gradcam,
    "rotations": rotations,
    "perturbed": perturbed,
    "jacobian": jacobian,
    "distances": distances,
}


def make(
    kind: str, model: Model, folder: Path, name: str, key: str, metadata: Mapping[str, Any]
) -> dict[str, Any]:
    """Make one kind of pass and its record; what the model can't give is a reason, no file."""
    began = time.perf_counter()
    try:
        recipe = RECIPES[kind](model)
    except UserError as mistake:
        entry = _reason(mistake)
    else:
        try:
            entry = _written(kind, recipe, model, folder, name, {**metadata, "key": key})
            entry["seconds"] = round(time.perf_counter() - began, 3)
        except Unavailable as mistake:
            entry = _reason(mistake)
    entry["key"] = key
    write_json(folder / kind / f"{name}.json", entry)
    return entry


def _reason(mistake: UserError) -> dict[str, Any]:
    return {"reason": str(mistake).removeprefix("not available: ")}


def _written(
    kind: str,
    recipe: Recipe,
    model: Model,
    folder: Path,
    name: str,
    metadata: Mapping[str, Any],
) -> dict[str, Any]:
    """Run a recipe into its file; what the manifest says of it."""
    file = Path(kind) / f"{name}.safetensors"
    some = "rows" in recipe.arrays
    own = model.images.own_ids[: recipe.images] if some else model.images.ids
    with atomic_write(folder / file) as part:
        card = {**metadata, "kind": kind, "ids": ids_digest(own)}
        writer = ArrayWriter(part, recipe.arrays, card)
        for array, rows, row, plane in recipe.parts:
            writer.put(array, rows, row, plane)
        writer.close()
    return {
        "file": str(file),
        "digest": file_digest(folder / file),
        "images": recipe.images,
        "forwarded": recipe.forwarded,
        **recipe.notes,
    }


def make_all(
    folder: Path,
    name: str,
    kinds: Sequence[str],
    made_from: Mapping[str, Any],
    settings: Mapping[str, Any],
    load: Callable[[], Model],
    metadata: Mapping[str, Any],
) -> dict[str, Any]:
    """The entries of every kind that is wanted: those that are there already are kept.

    ``made_from`` is what all kinds depend on; of the ``settings`` (with those ``OF_STUDY`` of
    ``stamp.config.extra_outputs``) each has its own. The model is
    loaded only if a kind has to be made.
    """
    found: dict[str, Any] = {}
    model: Model | None = None
    for kind in bar(kinds, f"{name} passes", len(kinds), "pass"):
        own = {setting: settings[setting] for setting in KINDS[kind]}
        key = key_of({**made_from, "kind": kind, "settings": own})
        entry = kept(folder, kind, name, key)
        if entry is None:
            model = model or load()
            entry = make(kind, model, folder, name, key, metadata)
        found[kind] = entry
    return found
