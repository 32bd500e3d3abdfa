"""Python and the packages that a run needs."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from stamp.cli.doctor.finding import ERROR, NOTE, OK, WARNING, Finding

OLDEST = (3, 11)
NEEDED = ("snakemake", "polars", "numpy", "pillow")
# Without these, models of other kinds still run.
MODELS = ("torch", "timm")
OPTIONAL = {
    "onnxruntime": "models of --onnx",
    "torchxrayvision": "models of torchxrayvision",
    "transformers": "models of --hf",
}


def findings() -> Iterator[Finding]:
    """Python, then each package with its version or what fails without it."""
    level = OK if sys.version_info >= OLDEST else ERROR
    wanted = "" if level == OK else f"; {OLDEST[0]}.{OLDEST[1]} or newer is needed"
    yield Finding(level, "Python", f"{platform.python_version()} on {platform.platform()}{wanted}")
    for name in NEEDED:
        yield _package(name, ERROR, "nothing runs without it: envs/install envs/requirements.txt")
    for name in MODELS:
        yield _package(name, WARNING, "only outputs that you bring can be scored")
    for name, what in OPTIONAL.items():
        yield _package(name, NOTE, f"needed for {what} only")


def _package(name: str, level: str, without: str) -> Finding:
    try:
        return Finding(OK, name, version(name))
    except PackageNotFoundError:
        return Finding(level, name, f"is not installed; {without}")
