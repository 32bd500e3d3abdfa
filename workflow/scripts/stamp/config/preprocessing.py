"""How an image becomes the pixels a model sees: a small record with a name of its own.

Models that share the record share one pixel cache. Normalisation (mean, std) is the model's own and
happens on the device, after the cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """Size in pixels, channels (1 gray, 3 colour), interpolation, and the centre crop's share.

    ``crop`` is timm's ``crop_pct``: the shorter side becomes floor(size / crop), then the centre is
    cut out. A crop of 1 keeps the proportions and loses the ends of the longer side; without a crop
    nothing is lost and the picture is squeezed.
    """

    size: int
    channels: int = 3
    interpolation: str = "bilinear"
    crop: float | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """Plain values, without what is not set."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def key(self) -> str:
        """A name for files: ``48-gray-bilinear``, ``224-rgb-bicubic-crop0.95``."""
        colour = "gray" if self.channels == 1 else "rgb"
        name = f"{self.size}-{colour}-{self.interpolation}"
        return name if self.crop is None else f"{name}-crop{self.crop:g}"


def merged(*settings: Mapping[str, Any]) -> Preprocessing:
    """The preprocessing of a study's settings overridden by a model's own, last wins."""
    both = {key: value for each in settings for key, value in each.items()}
    return Preprocessing(**both)
