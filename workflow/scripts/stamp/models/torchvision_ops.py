"""Make torchvision importable where its compiled operators can't load.

A CUDA build of torchvision beside a CPU build of torch can't load its operator library, and its
import then fails because it registers shape rules for operators that do not exist. Declaring those
operators first lets torchvision and what builds on it import; nothing here calls them. Where the
library loads, nothing is declared. Import timm from here, so that the order can't be got wrong.

Importing torchvision and timm also imports torch's compiler, 1.5 of the 5 CPU-seconds that a short
job takes to start, for one function that only compiled code asks for and to mark functions that
must not be compiled. Here nothing is compiled, so that is put off until somebody does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

_declared: list[Any] = []  # a Library's declarations last as long as the object


def declare_missing() -> bool:
    """Declare torchvision's operators if its own library can't be loaded; whether it was needed."""
    import torch

    spec = find_spec("torchvision")
    if spec is None or spec.origin is None or _declared:
        return bool(_declared)
    try:
        for file in Path(spec.origin).parent.glob("_C*.so"):
            torch.ops.load_library(str(file))
    except OSError:
        pass
    if hasattr(torch.ops.torchvision, "nms"):
        return False
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _declared.append(library)
    return True


def _is_compile_supported(device: str) -> Any:
    """What torchvision asks the compiler, asked when it is called and not when it is imported."""
    from torch._dynamo.utils import is_compile_supported

    return is_compile_supported(device)


@contextmanager
def compiler_put_off() -> Iterator[None]:
    """Let modules be imported that name the compiler, without importing it; nothing stays behind.

    ``torch.compiler.disable`` leaves functions as they are meanwhile. Where the compiler is
    imported already, nothing is done.
    """
    import torch

    names = ("torch._dynamo", "torch._dynamo.utils")
    if names[0] in sys.modules:
        yield
        return
    compiler: Any = torch.compiler
    package, utils = (ModuleType(name) for name in names)
    package.__path__ = []
    vars(utils)["is_compile_supported"] = _is_compile_supported
    vars(package)["utils"] = utils
    real, compiler.disable = compiler.disable, _as_it_is
    sys.modules.update(zip(names, (package, utils), strict=True))
    try:
        yield
    finally:
        compiler.disable = real
        for name in names:
            sys.modules.pop(name, None)
        vars(torch).pop("_dynamo", None)


def _as_it_is(fn: Any = None, **settings: Any) -> Any:
    """The function itself, as a decorator with or without arguments."""
    return _as_it_is if fn is None else fn


declare_missing()
try:
    with compiler_put_off():
        import timm
except (ImportError, AttributeError):  # one that asks for more of the compiler than this
    import timm

__all__ = ["compiler_put_off", "declare_missing", "timm"]
