"""Projection Norm (Yu et al. 2022): how differently a network learns its own answers elsewhere.

A copy of the network is initialised again and learns the network's answers to source images: the
reference. Another, from the same start, learns its answers to a target's images. Their distance is
large where the answers are learned by other weights than on the source. The rule is ours, short and
the same for every network: ``STEPS`` steps of stochastic gradient descent on ``BATCH`` images, with
momentum .9 and a cosine schedule from ``RATE``. The authors give the distance as it is, for one
network on many targets; to compare networks of any size it is taken relative to the way that the
reference went.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from stamp.core.errors import UserError
from stamp.inference.logits import Forward, check_outputs
from stamp.models.loaded_model import LoadedModel

STEPS, BATCH, RATE, MOMENTUM = 100, 64, 0.01, 0.9
LEAST = 2  # images that a batch norm needs

Pixels = Callable[[np.ndarray], np.ndarray]  # from row numbers to uint8 pixels


class PseudoLabelTraining:
    """A network, its answers, and its start for all trainings."""

    def __init__(self, loaded: LoadedModel, task: str, classes: int, seed: int, device: str):
        self.loaded, self.task, self.classes, self.seed = loaded, task, classes, seed
        self.device = device
        self.start = initialised_again(loaded.module, seed).to(device)
        self.forward = Forward(loaded, device)
        self.there = [at for at in range(classes) if at not in loaded.missing]

    def trained(self, pixels: Pixels, rows: np.ndarray) -> torch.Tensor:
        """The parameters of a copy of the start that learned the network's answers to images."""
        answers = self._answers(pixels, rows)
        network = copy.deepcopy(self.start).train()
        optimiser = torch.optim.SGD(network.parameters(), lr=RATE, momentum=MOMENTUM)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
        drawn = np.random.default_rng(self.seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)  # dropout
            for _ in range(STEPS):
                places = drawn.permutation(len(rows))[:BATCH]
                batch = torch.from_numpy(pixels(rows[places]))
                outputs = network(self.forward.normalised(batch)).float()[:, self.there]
                loss = self._loss(outputs, answers[torch.from_numpy(places)])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                schedule.step()
        return flat(network)

    def relative(self, reference: torch.Tensor, other: torch.Tensor) -> float:
        """``|other - reference| / |reference - start|``."""
        moved = torch.linalg.vector_norm(reference - flat(self.start))
        return float(torch.linalg.vector_norm(other - reference) / moved)

    def _answers(self, pixels: Pixels, rows: np.ndarray) -> torch.Tensor:
        """The pseudo-labels of images: class numbers, or probabilities of several labels.

        A threshold would say no to every image for rare labels.
        """
        found = []
        for start in range(0, len(rows), BATCH):
            batch = self.forward(torch.from_numpy(pixels(rows[start : start + BATCH])))
            check_outputs(batch, self.classes, "", self.loaded.missing)
            found.append(torch.from_numpy(batch[:, self.there]))
        logits = torch.cat(found).to(self.device)
        return logits.argmax(dim=1) if self.task == "multiclass" else logits.sigmoid()

    def _loss(self, outputs: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
        if self.task == "multiclass":
            return functional.cross_entropy(outputs, answers)
        return functional.binary_cross_entropy_with_logits(outputs, answers)


def initialised_again(module: nn.Module, seed: int) -> nn.Module:
    """A copy with the layers' own random start, drawn from the seed on the CPU.

    Parameters that no layer initialises by itself, such as position embeddings, stay as they are.
    """
    fresh = copy.deepcopy(module).cpu()
    count = 0
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for part in fresh.modules():
            reset = getattr(part, "reset_parameters", None)
            if callable(reset):
                reset()
                count += sum(one.numel() for one in part.parameters(recurse=False))
    if not count:
        raise UserError("no layer of it can be initialised again")
    for parameter in fresh.parameters():
        parameter.requires_grad_(True)
    return fresh


def flat(module: nn.Module) -> torch.Tensor:
    """All parameters in one vector, in double precision."""
    return torch.cat([one.detach().double().flatten() for one in module.parameters()])
