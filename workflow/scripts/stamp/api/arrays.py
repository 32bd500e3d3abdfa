"""Arrays of any library as NumPy's; torch is never imported."""

from __future__ import annotations

from typing import Any

import numpy as np

from stamp.core.errors import UserError


def numbers(values: Any) -> np.ndarray:
    """Numbers in float64, from an array, a list or a tensor on any device."""
    try:
        return np.asarray(_on_cpu(values), dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError(f"expected numbers, not {type(values).__name__}") from None


def outputs(values: Any) -> np.ndarray:
    """Outputs of a model, [images, classes] in float64."""
    found = numbers(values)
    if found.ndim != 2 or not found.size:
        raise UserError(f"outputs are [images, classes], not of the shape {found.shape}")
    return found


def per_image(values: Any, name: str, images: int) -> list[Any]:
    """One value per image, as a list."""
    found = np.asarray(_on_cpu(values)).tolist()
    if not isinstance(found, list) or len(found) != images:
        many = len(found) if isinstance(found, list) else 1
        raise UserError(f"{name} has {many} values for {images} images")
    return found


def _on_cpu(values: Any) -> Any:
    """A tensor's values; others as they are."""
    if not hasattr(values, "detach"):
        return values
    found = values.detach().cpu()
    return (found.double() if found.is_floating_point() else found).numpy()
