"""Two-stage fine-tuning: a new head on a frozen body, then the whole network.

AdamW, cosine annealing, a smaller learning rate for the body than for the head, smoothed labels,
binary cross-entropy: that much the paper says. It gives no epochs, rates, smoothing or image size;
``DEFAULTS`` are this project's and not the paper's.

Images stay on disk, in the pixel cache; one that does not fit into memory is read in large blocks
(:mod:`stamp.models.training.block_shuffle`). After every epoch a checkpoint is written; a run that
was killed resumes after its last one. What is random in an epoch depends on the seed and on the
epoch's number alone, so on a CPU with a fixed number of threads an interrupted run ends with the
same bits as one that was not. CUDA kernels add in no fixed order: there, two runs agree closely,
not exactly.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from stamp.core.errors import UserError
from stamp.core.progress import bar, note
from stamp.models.classifier import body_parameters, head_parameters
from stamp.models.loaded_model import LoadedModel
from stamp.models.loaders.finetune import network
from stamp.models.training.block_shuffle import BlockShuffle, fits_in_memory
from stamp.models.training.epoch_checkpoint import read_checkpoint, write_checkpoint
from stamp.models.training.splits import TrainingSplit, batches
from stamp.models.training.validation import check_validation, metric_of

DEFAULTS: dict[str, Any] = {
    "stage1": {"epochs": 2, "learning_rate": 1e-3},
    "stage2": {"epochs": 8, "learning_rate": 1e-4, "backbone_learning_rate": 1e-5},
    "weight_decay": 0.01,
    "label_smoothing": 0.05,
    "batch": 32,
    "warmup": 0.05,
    "augment": True,
    "patience": None,
}
CLIP = 1.0  # the largest norm of a step's gradient
OVERFLOWS = 0.1  # share of an epoch's steps that may overflow in half precision
VALIDATION_BATCH = 64

# The largest augmentation of a training image: radians, share of its size, share of its range.
ANGLE, SCALE, SHIFT, CONTRAST, BRIGHTNESS = math.radians(7), 0.1, 0.05, 0.15, 0.1


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a network is fine-tuned beside its recipe; ``made_with`` are versions and code."""

    seed: int
    threads: int
    device: str
    checkpoint: Path
    name: str
    made_with: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Finetuned:
    """The network with the weights of its best epoch, one record per epoch, the best's number."""

    loaded: LoadedModel
    curve: list[dict[str, Any]]
    best: int
    in_blocks: bool = False

    @property
    def card(self) -> dict[str, Any]:
        """What the metadata of its weights say: the best epoch, and where training began from."""
        origin = {f"initial_{key}": value for key, value in self.loaded.origin.items()}
        return {"best": self.best, **origin, **({"shuffled": "blocks"} if self.in_blocks else {})}


def recipe_of(block: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe of a ``load`` block, with the defaults for what it leaves out."""
    own = block.get("recipe", {})
    return {
        key: {**value, **own.get(key, {})} if isinstance(value, dict) else own.get(key, value)
        for key, value in DEFAULTS.items()
    }


def loss_of(logits: torch.Tensor, labels: torch.Tensor, smoothing: float) -> torch.Tensor:
    """Cross-entropy [n] or binary cross-entropy [n, C] with smoothed labels, without NaN ones.

    A label y of 0 or 1 counts as ``y (1 - s) + s / 2``, and a class of C as ``1 - s + s / C`` with
    ``s / C`` for each other class (Szegedy et al. 2016).
    """
    if labels.ndim == 1:
        return functional.cross_entropy(logits, labels.long(), label_smoothing=smoothing)
    known = ~torch.isnan(labels)
    smooth = torch.where(known, labels, 0.0) * (1 - smoothing) + smoothing / 2
    each = functional.binary_cross_entropy_with_logits(logits, smooth, reduction="none")
    return torch.where(known, each, 0.0).sum() / known.sum()


def annealed(step: int, steps: int, warmup: float) -> float:
    """The share of the peak learning rate at a step counted from 0.

    A line up over ``r = round(warmup * steps)`` steps, ``(step + 1) / (r + 1)``, then half a
    cosine down, ``(1 + cos(pi (step - r) / (steps - r))) / 2`` (Loshchilov & Hutter 2017).
    """
    rise = round(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    return (1 + math.cos(math.pi * (step - rise) / (steps - rise))) / 2


def jitter(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Radiographs in [0, 1], each rotated, scaled, shifted and relit a little, never mirrored.

    A mirrored chest has its heart on the other side, which is a finding of its own. The draws are
    made on the CPU, so that they do not depend on the device.
    """
    most = torch.tensor([ANGLE, SCALE, 2 * SHIFT, 2 * SHIFT, CONTRAST, BRIGHTNESS])
    draws = (torch.rand(6, len(images), generator=generator) * 2 - 1) * most[:, None]
    angle, scale, x, y, gain, offset = draws.to(images.device)
    cos, sin = torch.cos(angle) * (1 + scale), torch.sin(angle) * (1 + scale)
    matrix = torch.stack([cos, -sin, x, sin, cos, y], dim=1).view(-1, 2, 3)
    grid = functional.affine_grid(matrix, list(images.shape), align_corners=False)
    moved = functional.grid_sample(images, grid, align_corners=False)
    gain, offset = gain[:, None, None, None], offset[:, None, None, None]
    return ((moved - 0.5) * (1 + gain) + 0.5 + offset).clamp_(0, 1)


def parameter_groups(
    module: nn.Module, recipe: Mapping[str, Any], stage: int
) -> list[dict[str, Any]]:
    """What a stage trains, each group with its peak rate; norms and biases do not decay.

    A network may name others that must not decay either (positions, class token), as timm's do.
    """
    rates = recipe[f"stage{stage}"]
    parts = [(head_parameters(module), rates["learning_rate"])]
    if stage == 2:
        parts.append((body_parameters(module), rates["backbone_learning_rate"]))
    named: set[str] = getattr(module, "no_weight_decay", set)()
    kept = {id(value) for name, value in module.named_parameters() if name in named}
    groups = []
    for values, rate in parts:
        members: dict[bool, list[nn.Parameter]] = {True: [], False: []}
        for value in values:
            members[value.ndim > 1 and id(value) not in kept].append(value)
        groups += [
            {"params": some, "peak": rate, "weight_decay": recipe["weight_decay"] if decays else 0}
            for decays, some in members.items()
            if some
        ]
    return groups


class FinetuneRun:
    """A network on its device, the two splits, and how far its training has come."""

    def __init__(
        self,
        loaded: LoadedModel,
        recipe: Mapping[str, Any],
        train: TrainingSplit,
        val: TrainingSplit,
        device: str,
    ):
        self.recipe, self.train, self.val, self.device = recipe, train, val, device
        module: Any = loaded.module
        self.module = module.to(device, memory_format=torch.channels_last)
        self.mean = torch.tensor(loaded.mean, device=device)[:, None, None]
        self.std = torch.tensor(loaded.std, device=device)[:, None, None]
        self.size = min(recipe["batch"], len(train.rows))
        self.steps = len(train.rows) // self.size
        self.in_blocks = not fits_in_memory(train.cache)
        self.curve: list[dict[str, Any]] = []
        self.best: dict[str, torch.Tensor] = {}
        self.stage = 0

    @property
    def plan(self) -> list[tuple[int, int]]:
        """The stage of every epoch and its place in it."""
        counts = {stage: self.recipe[f"stage{stage}"]["epochs"] for stage in (1, 2)}
        return [(stage, place) for stage, count in counts.items() for place in range(count)]

    @property
    def best_epoch(self) -> int:
        """The number, from 1, of the first epoch with the largest validation metric."""
        return 1 + int(np.argmax([record["metric"] for record in self.curve]))

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or the second stage has not improved for too long."""
        done, patience = len(self.curve), self.recipe["patience"]
        if done == len(self.plan) or patience is None or not done:
            return done == len(self.plan)
        return done - max(self.best_epoch, self.recipe["stage1"]["epochs"]) >= patience

    def enter(self, stage: int) -> None:
        """Begin a stage: what is trained, with a new optimiser."""
        self.stage = stage
        for value in body_parameters(self.module):
            value.requires_grad_(stage == 2)
        groups = parameter_groups(self.module, self.recipe, stage)
        self.trained = [value for group in groups for value in group["params"]]
        self.optimiser = torch.optim.AdamW(groups, fused=True)
        self.scaler = torch.amp.GradScaler("cuda", enabled=self.device == "cuda")

    def forward(
        self, pixels: torch.Tensor, generator: torch.Generator | None = None
    ) -> torch.Tensor:
        """float32 logits of a uint8 batch [n, h, w, c], augmented if a generator is given."""
        images = pixels.to(self.device, non_blocking=True).permute(0, 3, 1, 2).float() / 255
        if generator is not None:
            images = jitter(images, generator)
        images = (images - self.mean) / self.std
        with torch.autocast("cuda", dtype=torch.float16, enabled=self.device == "cuda"):
            return self.module(images.contiguous(memory_format=torch.channels_last)).float()

    def step(self, loss: torch.Tensor, share: float) -> None:
        """One step of the optimiser down a loss, at a share of the peak rates."""
        for group in self.optimiser.param_groups:
            group["lr"] = share * group["peak"]
        self.optimiser.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimiser)
        nn.utils.clip_grad_norm_(self.trained, CLIP)
        self.scaler.step(self.optimiser)
        self.scaler.update()

    def shuffled(self, seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Pixels and labels of an epoch's batches, in an order that the seed decides."""
        if self.in_blocks:
            return BlockShuffle(self.train, self.size).batches(seed, self.device)
        order = np.random.default_rng(seed).permutation(self.train.rows)
        groups = np.split(order[: self.steps * self.size], self.steps)
        return batches(self.train, groups, self.device)

    def train_epoch(self, place: int, seed: int, shown: Any) -> float:
        """One pass over the training images; the mean loss, NaN if it diverged.

        In the first stage the network is in evaluation mode: norms keep their statistics. Half
        precision may overflow now and then: the scaler leaves such a step out, as the mean does.
        """
        self.module.train(self.stage == 2)
        torch.manual_seed(seed)  # dropout and the like
        generator = torch.Generator().manual_seed(seed)
        total, counted = torch.zeros(2, device=self.device)
        steps = self.steps * self.recipe[f"stage{self.stage}"]["epochs"]
        for at, (pixels, labels) in enumerate(self.shuffled(seed)):
            logits = self.forward(pixels, generator if self.recipe["augment"] else None)
            labels = labels.to(self.device, non_blocking=True)
            loss = loss_of(logits, labels, self.recipe["label_smoothing"])
            self.step(loss, annealed(place * self.steps + at, steps, self.recipe["warmup"]))
            finite = torch.isfinite(loss.detach())
            total += torch.where(finite, loss.detach(), 0.0)
            counted += finite
            shown.update(1)
        allowed = OVERFLOWS * self.steps if self.scaler.is_enabled() else 0
        return float(total / counted) if self.steps - float(counted) <= allowed else math.nan

    @torch.no_grad()
    def validate(self) -> tuple[float, float]:
        """Loss and metric on the validation images; NaN where outputs are not finite."""
        self.module.eval()
        groups = np.split(
            self.val.rows, range(VALIDATION_BATCH, len(self.val.rows), VALIDATION_BATCH)
        )
        read = batches(self.val, groups, self.device)
        logits = torch.cat([self.forward(pixels).cpu() for pixels, _ in read])
        labels = self.val.labels[self.val.rows]
        if not torch.isfinite(logits).all():
            return math.nan, math.nan
        loss = loss_of(logits, torch.from_numpy(labels), self.recipe["label_smoothing"])
        return float(loss), metric_of(logits.numpy(), labels)

    def epoch(self, seed: int, what: str, shown: Any) -> None:
        """The next epoch of the plan: train, validate, keep the weights if they are the best."""
        number = len(self.curve)
        stage, place = self.plan[number]
        shown.set_description(f"{what} stage {stage} epoch {number + 1}/{len(self.plan)}")
        if stage != self.stage:
            self.enter(stage)
        own = int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0] >> 1)
        loss = self.train_epoch(place, own, shown)
        val_loss, metric = self.validate()
        if not math.isfinite(loss + val_loss):
            raise UserError(
                f"training diverged in epoch {number + 1}; lower the learning rates of stage{stage}"
            )
        rates = [group["lr"] for group in self.optimiser.param_groups]
        self.curve.append(
            {
                "epoch": number + 1,
                "stage": stage,
                "train_loss": loss,
                "val_loss": val_loss,
                "metric": metric,
                "learning_rate": rates[0],
                "backbone_learning_rate": rates[-1] if stage == 2 else 0.0,
            }
        )
        if self.best_epoch == number + 1:
            state = self.module.state_dict()
            self.best = {name: value.detach().cpu().clone() for name, value in state.items()}

    def state(self) -> dict[str, Any]:
        """All that the next epoch depends on, as tensors and plain values."""
        return {
            "model": self.module.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "scaler": self.scaler.state_dict(),
            "curve": self.curve,
            "best": self.best,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the state that a run saved."""
        self.curve, self.best = state["curve"], state["best"]
        self.enter(self.curve[-1]["stage"])
        self.module.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.scaler.load_state_dict(state["scaler"])


def check(recipe: Mapping[str, Any], train: TrainingSplit, val: TrainingSplit) -> None:
    """Refuse a recipe without epochs and splits that can't be trained or chosen on."""
    if not recipe["stage1"]["epochs"] + recipe["stage2"]["epochs"]:
        raise UserError("stage1 and stage2 have no epochs")
    if not len(train.rows):
        raise UserError("no training image has a label")
    check_validation(val.labels)


def prepare(seed: int, threads: int, device: str) -> None:
    """Set torch up for a run: threads, seed, and deterministic algorithms on the CPU."""
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("device 'cuda' was asked for, but torch finds no CUDA device")
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(device == "cpu")
    deterministic: Any = torch.utils.deterministic
    deterministic.fill_uninitialized_memory = False  # slow, and nothing reads it
    torch.backends.cudnn.benchmark = device == "cuda"


def finetune(
    block: Mapping[str, Any],
    classes: Sequence[str],
    train: TrainingSplit,
    val: TrainingSplit,
    how: RunSettings,
) -> Finetuned:
    """The network of a ``load`` block, fine-tuned on ``train``, its best epoch chosen on ``val``.

    It resumes from the checkpoint if that was left by a run with the same block, classes, seed,
    device, images, labels and ``made_with``. The checkpoint stays: drop it once the result is
    written.
    """
    seed, device = how.seed, how.device
    recipe = recipe_of(block)
    check(recipe, train, val)
    splits = (train.digest, val.digest)
    told = [dict(block), recipe, list(classes), seed, device, *splits, how.made_with]
    told += [] if fits_in_memory(train.cache) else ["blocks"]
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]
    saved = read_checkpoint(how.checkpoint, digest)
    prepare(seed, how.threads, device)
    loaded = network(block, classes, initial=saved is None)
    run = FinetuneRun(loaded, recipe, train, val, device)
    if saved is not None:
        run.restore(saved)
        loaded = replace(loaded, origin=saved["origin"])
    with bar(None, how.name, (len(run.plan) - len(run.curve)) * run.steps, "step") as shown:
        while not run.finished:
            run.epoch(seed, how.name, shown)
            state = {**run.state(), "origin": dict(loaded.origin)}
            write_checkpoint(how.checkpoint, digest, state)
    note(f"best of {len(run.curve)} epochs: {run.best_epoch}")
    run.module.load_state_dict(run.best)
    for value in run.module.parameters():
        value.requires_grad_(True)
    run.module.to("cpu").eval()
    return Finetuned(loaded, run.curve, run.best_epoch, run.in_blocks)
