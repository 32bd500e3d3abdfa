"""Make torchvision importable where its compiled operators can't load.

A CUDA build of torchvision beside a CPU build of torch can't load its operator library, and its
import then fails because it registers shape rules for operators that do not exist. Declaring those
operators first lets torchvision and what builds on it import; nothing here calls them. Where the
library loads, nothing is declared. Import timm from here, so that the order can't be got wrong.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
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


declare_missing()

import timm  # noqa: E402  (only now: it imports torchvision)

__all__ = ["declare_missing", "timm"]
