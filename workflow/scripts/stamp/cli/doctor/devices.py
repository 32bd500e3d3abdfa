"""The device that models run on; on a GPU, whether it computes what the CPU does.

The comparison on a GPU was written where there is none and has not been run there.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from stamp.cli.doctor.finding import ERROR, NOTE, OK, WARNING, Finding
from stamp.core import device

DRIVER = Path("/proc/driver/nvidia/version")
BATCH, SIDE, REPEATS = 32, 64, 5
# Half precision, in which a GPU runs models, has 11 bits: the last of them is 5e-4 of a number.
TOLERANCE = 2e-2


def findings(setting: str) -> Iterator[Finding]:
    """The device, compiled operators, and one small network on both where there is a GPU."""
    there, driver = device.present(), driver_version()
    chosen = device.choose(setting)
    try:
        import torch
    except ImportError:
        yield Finding(WARNING, "device", "torch can't be imported, so no model can be run")
        return
    if chosen == "cpu":
        yield Finding(NOTE, "device", _no_gpu(setting, there))
    elif not torch.cuda.is_available():
        built = torch.version.cuda or "no CUDA"
        yield Finding(
            ERROR,
            "device",
            f"cuda is asked for, {there} GPUs are there (driver {driver}), but torch "
            f"{torch.__version__}, built for {built}, finds none: install a build of torch that "
            "fits the driver, or set device: cpu",
        )
    else:
        names = [torch.cuda.get_device_name(one) for one in range(torch.cuda.device_count())]
        built = f"CUDA {torch.version.cuda}, driver {driver}"
        yield Finding(OK, "device", f"{', '.join(names)}; {built}")
    yield _operators()
    if chosen == "cuda" and torch.cuda.is_available():
        yield compared()


def _no_gpu(setting: str, there: int) -> str:
    if there and setting == "cpu":
        return f"cpu, as configured; {there} GPUs are there"
    if there:
        return "cpu: CUDA_VISIBLE_DEVICES lets no GPU through"
    return "cpu: no GPU in this machine; the same commands run, slower"


def driver_version() -> str:
    """The version of NVIDIA's driver as the kernel tells it."""
    text = DRIVER.read_text() if DRIVER.is_file() else ""
    found = re.search(r"Kernel Module.*?(\d+\.\d+(?:\.\d+)?)", text)
    return found[1] if found else "unknown"


def _operators() -> Finding:
    """Whether torchvision's compiled operators load, on which timm's import builds."""
    try:
        from stamp.models.torchvision_ops import declare_missing

        missing = declare_missing()
    except ImportError as error:
        return Finding(WARNING, "operators", f"timm can't be imported: {error}")
    if missing:
        text = "torchvision's compiled ones can't be loaded (another build than torch's?); unused"
        return Finding(NOTE, "operators", text)
    return Finding(OK, "operators", "torchvision's compiled ones load")


def compared(other: str = "cuda") -> Finding:
    """One small network on CPU and GPU, as jobs run it: the largest difference, and the speed."""
    import numpy as np
    import torch

    from stamp.inference.logits import Forward
    from stamp.models.loaded_model import LoadedModel

    generator = torch.Generator().manual_seed(0)
    batch = torch.randint(0, 256, (BATCH, SIDE, SIDE, 3), generator=generator, dtype=torch.uint8)
    outputs, seconds = [], []
    for name in ("cpu", other):
        loaded: Any = LoadedModel(module=_network(), mean=(0.5,) * 3, std=(0.25,) * 3)
        forward = Forward(loaded, name)
        outputs.append(forward(batch))  # the first pass also loads kernels
        began = time.perf_counter()
        for _ in range(REPEATS):
            forward(batch)  # returns an array on the CPU, so that the GPU has finished
        seconds.append((time.perf_counter() - began) / REPEATS)
    scale = max(float(np.abs(outputs[0]).max()), 1e-6)
    apart = float(np.abs(outputs[1] - outputs[0]).max()) / scale
    text = (
        f"one small network on {BATCH} images: outputs differ by {apart:.1e} of the largest "
        f"(at most {TOLERANCE:g} in half precision), {seconds[0] / seconds[1]:.1f} times "
        "as fast as the CPU"
    )
    return Finding(OK if apart <= TOLERANCE else ERROR, "GPU and CPU", text)


def _network() -> Any:
    """Some convolutions with fixed weights."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    widths = (3, 32, 64, 64)
    layers: list[Any] = []
    for one, other in pairwise(widths):
        layers += [nn.Conv2d(one, other, 3, stride=2, padding=1), nn.BatchNorm2d(other), nn.GELU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10))
