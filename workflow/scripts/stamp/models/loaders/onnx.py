"""ONNX files, run by onnxruntime on the CPU, or on CUDA where its package for GPUs is installed.

The file's one input must be float pixels [n, channels, height, width]. A file that was exported for
a fixed number of images gets the batch in pieces of that size, the last one filled up with zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from stamp.core.errors import UserError, suggest
from stamp.models.loaded_model import LoadedModel
from stamp.models.loaders.black_box import BlackBoxModule, finished
from stamp.models.weights import first_line

TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}
CUDA = "CUDAExecutionProvider"


def _package() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise UserError(
            "the model needs the package onnxruntime: pip install onnxruntime "
            "(for a GPU, onnxruntime-gpu)"
        ) from None
    return onnxruntime


class Sessions:
    """Sessions of a file, one a device and number of threads, made when they are first needed."""

    def __init__(self, path: Path, output: str | None):
        self.path = path
        self._made: dict[tuple[str, int], Any] = {}
        first = self.session("cpu", torch.get_num_threads())
        if len(first.get_inputs()) != 1:
            names = ", ".join(one.name for one in first.get_inputs())
            raise UserError(f"{path}: one input is expected, but it has {names}")
        self.input = first.get_inputs()[0]
        outputs = [one.name for one in first.get_outputs()]
        if output is None and len(outputs) > 1:
            raise UserError(f"{path}: has several outputs, {', '.join(outputs)}: give output")
        if output is not None and output not in outputs:
            raise UserError(f"{path}: unknown output '{output}': {suggest(output, outputs)}")
        self.output = output or outputs[0]
        if self.input.type not in TYPES:
            raise UserError(f"{path}: its input is {self.input.type}, but pixels are tensor(float)")
        self.dtype = TYPES[self.input.type]

    def session(self, device: str, threads: int) -> Any:
        """The session on a device; what onnxruntime can't read is a user's mistake."""
        if (device, threads) not in self._made:
            runtime = _package()
            options = runtime.SessionOptions()
            options.intra_op_num_threads, options.log_severity_level = threads, 3
            on_gpu = device == "cuda" and CUDA in runtime.get_available_providers()
            providers = [*([CUDA] if on_gpu else []), "CPUExecutionProvider"]
            try:
                made = runtime.InferenceSession(str(self.path), options, providers=providers)
            except Exception as error:  # onnxruntime's classes have no common ancestor
                line = first_line(error)
                raise UserError(f"{self.path}: can't be read as ONNX: {line}") from None
            self._made = {(device, threads): made}
        return self._made[device, threads]

    def check_shape(self, shape: Sequence[int]) -> None:
        """Refuse a file whose input is not [n, ``shape``]; sizes that it leaves open fit."""
        wanted = self.input.shape
        if len(wanted) != 4:
            raise UserError(f"{self.path}: its input has shape {wanted}, not [n, channels, h, w]")
        fixed = [size if isinstance(size, int) else None for size in wanted[1:]]
        if all(size in (None, own) for size, own in zip(fixed, shape, strict=True)):
            return
        if fixed[2] in (1, 3) and fixed[0] not in (1, 3):
            raise UserError(
                f"{self.path}: its input {wanted} has the channels last: export it with "
                "[n, channels, h, w]"
            )
        found = ", ".join(map(str, shape))
        raise UserError(
            f"{self.path}: its input is {wanted}, but pixels are [n, {found}]: "
            "give preprocessing.size, and mean and std with one number per channel"
        )

    def pieces(self, pixels: np.ndarray) -> list[tuple[np.ndarray, int]]:
        """The batch in pieces of the file's own size, with how many of each are images."""
        number = self.input.shape[0]
        if not isinstance(number, int) or number == len(pixels):
            return [(pixels, len(pixels))]
        found = []
        for start in range(0, len(pixels), number):
            piece = pixels[start : start + number]
            filled = np.zeros((number, *pixels.shape[1:]), pixels.dtype)
            filled[: len(piece)] = piece
            found.append((filled, len(piece)))
        return found

    def __call__(self, pixels: torch.Tensor) -> torch.Tensor:
        if pixels.requires_grad and torch.is_grad_enabled():
            raise UserError(f"gradients are not available: {self.path.name} is an ONNX file")
        session = self.session(pixels.device.type, torch.get_num_threads())
        array = np.ascontiguousarray(pixels.detach().cpu().numpy().astype(self.dtype, copy=False))
        found = []
        for piece, count in self.pieces(array):
            try:
                (outputs,) = session.run([self.output], {self.input.name: piece})
            except Exception as error:  # see above
                shape, line = list(piece.shape), first_line(error)
                raise UserError(f"{self.path}: fails on pixels {shape}: {line}") from None
            if np.ndim(outputs) == 0 or len(outputs) != len(piece):
                raise UserError(
                    f"{self.path}: gives outputs of shape {list(np.shape(outputs))} "
                    f"for {len(piece)} images"
                )
            found.append(outputs[:count])
        return torch.from_numpy(np.concatenate(found).astype(np.float32)).to(pixels.device)


def load(block: Mapping[str, Any], classes: Sequence[str], weights: Path | None) -> LoadedModel:
    """The network of an ONNX file, its outputs in the order of the study's classes."""
    path = weights or Path(block["file"])
    sessions = Sessions(path, block.get("output"))
    loaded = finished(
        BlackBoxModule(sessions, f"the ONNX file '{path.name}'"), block, classes, str(path)
    )
    size = block["preprocessing"]["size"]
    sessions.check_shape([len(loaded.mean), size, size])
    return loaded
