"""ImageNet-C in small: the made validation images, cut to squares, under the named corruptions."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter, ImageOps

from official.imagenet import CLASSES, name, photograph, picture, validation
from stamp.config.labels.imagenet_classes import number_of
from stamp.data.adapters.imagenet_c import ARCHIVES, CORRUPTIONS, SEVERITIES


def make(
    root: Path,
    per_class: int = 2,
    seed: int = 0,
    size: int = 224,
    corruptions: Sequence[str] = CORRUPTIONS,
    severities: Sequence[int] = SEVERITIES,
    classes: Sequence[str] = CLASSES,
) -> None:
    """Write ``<corruption>/<severity>/<wnid>/*.JPEG``: square pictures of side ``size``.

    They show the first ``per_class`` images a class of ``official.imagenet.make`` with that seed.
    """
    for number, wnid in validation(per_class, classes):
        clean = picture(number_of()[wnid], photograph(seed, number), size)
        square = ImageOps.fit(clean, (size, size))
        for row, corruption in enumerate(corruptions):
            for severity in severities:
                file = root / corruption / str(severity) / wnid / f"{name(number)}.JPEG"
                file.parent.mkdir(parents=True, exist_ok=True)
                rng = np.random.default_rng([seed, 0xC, number, row, severity])
                corrupted(square, corruption, severity, rng).save(file, quality=85)


def archives(root: Path) -> list[Path]:
    """Pack the corruptions into the five archives of Zenodo, as far as there are any; remove them.

    Members begin with the corruption, not with the archive's name.
    """
    packed = []
    for archive, names in ARCHIVES.items():
        there = [corruption for corruption in names if (root / corruption).is_dir()]
        if not there:
            continue
        packed.append(root / f"{archive}.tar")
        with tarfile.open(packed[-1], "w") as tar:
            for corruption in there:
                tar.add(root / corruption, arcname=corruption)
                shutil.rmtree(root / corruption)
    return packed


def corrupted(
    clean: Image.Image, corruption: str, severity: int, rng: np.random.Generator
) -> Image.Image:
    """A picture under a likeness of the corruption, by its family, stronger with the severity."""
    side, strength = clean.size[0], severity / 5
    if corruption.endswith("noise"):
        pixels = np.asarray(clean, dtype=np.float64)
        pixels += rng.normal(0, 90 * strength, pixels.shape)
        return Image.fromarray(np.clip(np.rint(pixels), 0, 255).astype(np.uint8))
    if corruption.endswith("blur"):
        return clean.filter(ImageFilter.GaussianBlur(side / 16 * strength))
    if corruption in ("contrast", "saturate"):
        gray = Image.new("RGB", clean.size, (128, 128, 128))
        plain = gray if corruption == "contrast" else clean.convert("L").convert("RGB")
        return Image.blend(clean, plain, 0.8 * strength)
    if corruption in ("pixelate", "elastic_transform"):
        few = max(4, round(side / (1 + 9 * strength)))
        return clean.resize((few, few), Image.Resampling.BOX).resize(
            clean.size, Image.Resampling.NEAREST
        )
    if corruption == "jpeg_compression":
        coded = io.BytesIO()
        clean.save(coded, "JPEG", quality=max(1, 25 - 5 * severity))
        return Image.open(coded).convert("RGB")
    white = Image.new("RGB", clean.size, (235, 240, 245))
    flakes = Image.fromarray((rng.random((side, side)) < 0.5 * strength).astype(np.uint8) * 255)
    if corruption in ("snow", "frost", "spatter"):
        return Image.composite(white, clean, flakes)
    return Image.blend(clean, white, 0.7 * strength)
