"""Small networks trained on the source's train split, by the recipes found in practice.

A recipe is the ``load`` block of a zoo entry: supervised end to end (plain, augmented, with label
noise, with mixup, on part of the data, stopped early), or a frozen backbone, left at random or
trained without labels, under a linear head. Everything random comes from one seed; with a fixed
number of threads a run repeats bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from stamp.core.errors import UserError
from stamp.core.progress import bar, note
from stamp.models.loaded_model import LoadedModel
from stamp.models.loaders.train import network
from stamp.models.training.augment import augment

DEFAULTS: dict[str, Any] = {
    "backbone": "supervised",
    "epochs": 8,
    "batch": 64,
    "learning_rate": 4e-3,
    "weight_decay": 0.02,
    "augment": False,
    "mixup": 0.0,
    "label_noise": 0.0,
    "fraction": 1.0,
}
CONTRAST_TEMPERATURE = 0.2
HEAD_PENALTY = 1e-3  # L2 of the linear head, per image


@dataclass(frozen=True, slots=True)
class TrainingImages:
    """Pixels [n, h, w, c], labels (NaN where unknown) and groups of the images, and the task."""

    pixels: np.ndarray
    labels: np.ndarray
    groups: Sequence[str]
    task: str


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained network and the mean loss of each epoch."""

    loaded: LoadedModel
    losses: list[float]
    images: int


def choose(
    groups: Sequence[str], fraction: float, task: str, rng: np.random.Generator
) -> np.ndarray:
    """Rows of the part of the data to train on: whole groups, or images within each class."""
    names, group = np.unique(np.asarray(groups), return_inverse=True)
    if fraction >= 1:
        return np.arange(len(group))
    if task == "multilabel":
        kept = rng.permutation(len(names))[: max(2, round(fraction * len(names)))]
        return np.flatnonzero(np.isin(group, kept))
    order = rng.permutation(len(group))
    rank = np.empty(len(group), dtype=int)
    for value in range(len(names)):
        rows = order[group[order] == value]
        rank[rows] = np.arange(len(rows)) / len(rows) >= fraction
    return np.flatnonzero(rank == 0)


def corrupt(labels: np.ndarray, share: float, classes: int, rng: np.random.Generator) -> np.ndarray:
    """Labels with a share replaced by another class (multiclass) or flipped (multilabel)."""
    if share == 0:
        return labels
    hit = rng.random(labels.shape) < share
    if labels.ndim == 1:
        other = (labels + rng.integers(1, classes, size=labels.shape)) % classes
        return np.where(hit, other, labels)
    return np.where(hit & ~np.isnan(labels), 1 - labels, labels)


def loss_of(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Cross-entropy, or binary cross-entropy over the labeled entries."""
    if labels.ndim == 1:
        return functional.cross_entropy(logits, labels)
    known = ~torch.isnan(labels)
    return functional.binary_cross_entropy_with_logits(logits[known], labels[known])


def contrastive_loss(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """NT-Xent of two views of a batch (Chen et al. 2020, SimCLR)."""
    views = functional.normalize(torch.cat([first, second]), dim=1)
    similar = views @ views.T / CONTRAST_TEMPERATURE
    similar.fill_diagonal_(float("-inf"))
    n = len(first)
    partner = torch.arange(2 * n).roll(n)
    return functional.cross_entropy(similar, partner)


class Trainer:
    """One network, its pixels and labels, and the epochs over them."""

    def __init__(
        self, loaded: LoadedModel, pixels: torch.Tensor, recipe: Mapping[str, Any], seed: int
    ):
        self.loaded, self.pixels, self.recipe = loaded, pixels, recipe
        network: Any = loaded.module
        self.module = network.to(memory_format=torch.channels_last)
        self.generator = torch.Generator().manual_seed(seed)
        self.shares = np.random.default_rng([seed, 1])  # of mixup
        self.mean = torch.tensor(loaded.mean)[:, None, None]
        self.std = torch.tensor(loaded.std)[:, None, None]

    def batch(self, rows: torch.Tensor, augmented: bool) -> torch.Tensor:
        images = self.pixels[rows].permute(0, 3, 1, 2).float().div_(255)
        if augmented:
            images = augment(images, self.generator)
        return ((images - self.mean) / self.std).contiguous(memory_format=torch.channels_last)

    def run(self, parameters: list[nn.Parameter], step: Any, what: str) -> list[float]:
        """Epochs of AdamW with one cycle of the learning rate; the mean loss of each."""
        epochs, size = self.recipe["epochs"], min(self.recipe["batch"], len(self.pixels))
        steps = len(self.pixels) // size
        optimiser = torch.optim.AdamW(
            parameters,
            lr=self.recipe["learning_rate"],
            weight_decay=self.recipe["weight_decay"],
            fused=True,
        )
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimiser,
            self.recipe["learning_rate"],
            total_steps=max(1, epochs * steps),
            pct_start=0.2,
        )
        losses = []
        for _ in bar(range(epochs), what, epochs, "epoch"):
            order = torch.randperm(len(self.pixels), generator=self.generator)
            total = 0.0
            for rows in order[: steps * size].split(size):
                loss = step(rows)
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(parameters, 1.0)
                optimiser.step()
                schedule.step()
                total += float(loss.detach())
            losses.append(total / steps)
        if losses:
            note(f"loss {losses[-1]:.4g}")
        return losses

    def supervised(self, labels: torch.Tensor, what: str) -> list[float]:
        """Train all weights with labels."""
        self.module.train()

        def step(rows: torch.Tensor) -> torch.Tensor:
            images = self.batch(rows, self.recipe["augment"])
            if self.recipe["mixup"]:
                return self.mixed(images, labels[rows])
            return loss_of(self.module(images), labels[rows])

        return self.run(list(self.module.parameters()), step, what)

    def mixed(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of mixup (Zhang et al. 2018): of a batch and its reversal in random shares."""
        share = float(self.shares.beta(self.recipe["mixup"], self.recipe["mixup"]))
        logits = self.module(share * images + (1 - share) * images.flip(0))
        return share * loss_of(logits, labels) + (1 - share) * loss_of(logits, labels.flip(0))

    def selfsupervised(self, what: str) -> list[float]:
        """Train the backbone without labels, by agreement of two augmented copies of an image."""
        self.module.train()
        width = self.features(torch.arange(2)).shape[1]
        projector = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 32))

        def step(rows: torch.Tensor) -> torch.Tensor:
            first, second = (projector(self.embed(self.batch(rows, True))) for _ in range(2))
            return contrastive_loss(first, second)

        return self.run([*self.module.parameters(), *projector.parameters()], step, what)

    @torch.no_grad()
    def settle(self) -> None:
        """Give the normalisation layers of an untrained backbone the statistics of the images."""
        layers = [
            m for m in self.module.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)
        ]
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None  # the plain mean over all batches
        self.module.train()
        for rows in torch.arange(len(self.pixels)).split(256):
            self.module(self.batch(rows, False))

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        return self.module.forward_head(self.module.forward_features(images), pre_logits=True)

    @torch.no_grad()
    def features(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.embed(self.batch(part, False)) for part in rows.split(256)])

    def linear_head(self, labels: torch.Tensor) -> list[float]:
        """Fit the classifier layer alone on frozen, standardised features (L-BFGS, L2)."""
        self.module.eval()
        features = self.features(torch.arange(len(self.pixels)))
        centre, spread = features.mean(0), features.std(0)
        scale = spread.clamp_min(1e-6 * float(spread.max()) + 1e-12)
        features = (features - centre) / scale
        head = self.module.get_classifier()
        weight = torch.zeros_like(head.weight, requires_grad=True)
        bias = torch.zeros_like(head.bias, requires_grad=True)
        optimiser = torch.optim.LBFGS([weight, bias], max_iter=100, line_search_fn="strong_wolfe")

        def closure() -> torch.Tensor:
            optimiser.zero_grad()
            loss = (
                loss_of(features @ weight.T + bias, labels) + HEAD_PENALTY * weight.square().sum()
            )
            loss.backward()
            return loss

        optimiser.step(closure)
        loss = closure()
        with torch.no_grad():
            head.weight.copy_(weight / scale)
            head.bias.copy_(bias - (weight / scale) @ centre)
        return [float(loss.detach())]


def train(
    block: Mapping[str, Any],
    classes: Sequence[str],
    images: TrainingImages,
    seed: int,
    threads: int,
    what: str,
) -> Trained:
    """The network of a ``load`` block, trained on labeled images; ``what`` names it in errors."""
    task, labels = images.task, images.labels
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    deterministic: Any = torch.utils.deterministic
    deterministic.fill_uninitialized_memory = False  # slow, and nothing reads it
    torch.manual_seed(seed)
    recipe = {**DEFAULTS, **block}
    rng = np.random.default_rng(seed)
    rows = choose(images.groups, recipe["fraction"], task, rng)
    rows = rows[~np.isnan(labels[rows].reshape(len(rows), -1)).all(axis=1)]
    if not len(rows):
        raise UserError(f"model '{what}': no training image has a label")
    kept = corrupt(labels[rows], recipe["label_noise"], len(classes), rng)
    target = torch.from_numpy(kept.astype(np.int64 if task == "multiclass" else np.float32))
    trainer = Trainer(network(block, classes), torch.from_numpy(images.pixels[rows]), recipe, seed)
    losses: list[float] = []
    if recipe["backbone"] == "supervised":
        losses = trainer.supervised(target, what)
    else:
        if recipe["backbone"] == "selfsupervised":
            losses = trainer.selfsupervised(what)
        else:
            trainer.settle()
        losses += trainer.linear_head(target)
    if not all(np.isfinite(losses)):
        raise UserError(
            f"model '{what}': training diverged (loss {losses[-1]}); lower learning_rate"
        )
    trainer.module.eval()
    return Trained(trainer.loaded, losses, len(rows))
