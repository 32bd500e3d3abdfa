"""ImageNet-C: the 50,000 validation images under 15 (and 4 extra) corruptions at 5 severities.

Its images are 224 x 224 already and are not resized again. All 75 (95) folders hold the same
images. So only one is listed, the others are taken to hold what it holds, and the workflow's step
that looks for every image of an index says what is missing.

The fixed subset: within each class the images are ordered by a hash of their name; all classes'
first images come before all second ones, and within such a round the hash decides. A subset of n
images is the first n of that order: the same for every corruption, severity and seed, balanced over
the classes up to one image, and part of every larger subset.
Hendrycks and Dietterich, "Benchmarking neural network robustness to common corruptions and
perturbations", ICLR 2019.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from stamp.config.labels.imagenet_classes import number_of
from stamp.core.errors import UserError
from stamp.data.adapter_options import check_count, choices, choose, switch
from stamp.data.imagenet_folders import IMAGES, check_whole, class_folders, hashes, not_there

HELP = (
    "ImageNet-C is open: unpack blur.tar, digital.tar, noise.tar and weather.tar (for the extra "
    "corruptions extra.tar) of zenodo.org/records/2235448 in the data set's folder, which gives "
    "<corruption>/<1-5>/<wnid>/*.JPEG"
)
ARCHIVES = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    "weather": ("snow", "frost", "fog", "brightness"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
    "extra": ("speckle_noise", "gaussian_blur", "spatter", "saturate"),
}
EXTRA = ARCHIVES["extra"]
CORRUPTIONS = tuple(
    name for archive, names in ARCHIVES.items() if archive != "extra" for name in names
)
SEVERITIES = (1, 2, 3, 4, 5)
OPTIONS: dict[str, Any] = {
    "corruptions": list(CORRUPTIONS),
    "severities": list(SEVERITIES),
    "images": None,
    "partial": False,
}
SALT = "imagenet_c"


def index(options: Mapping[str, Any], root: Path, seed: int) -> pl.DataFrame:
    """The index by corruption and severity (``domain``: ``gaussian_noise-1``), then by class.

    An image's id is its domain and the validation image's name. ``images: n`` takes the fixed
    subset of n images; the extra column ``rank`` is an image's place in the order of which every
    subset is the beginning. The whole set has 50,000 images a domain; ``partial: true`` takes those
    that are in the first chosen domain's folder.
    """
    chosen = choose("imagenet_c", options, OPTIONS)
    known = (*CORRUPTIONS, *EXTRA)
    corruptions = choices("imagenet_c", "corruptions", chosen["corruptions"], known)
    severities = _severities(chosen["severities"])
    partial = switch("imagenet_c", "partial", chosen["partial"])
    count = chosen["images"]
    if count is not None:
        count = check_count("imagenet_c", "images", count, IMAGES)
    folders = {
        f"{corruption}-{severity}": _folder(root, corruption, severity)
        for corruption in corruptions
        for severity in severities
    }
    first = next(iter(folders.values()))
    rows = ranked(*class_folders("imagenet_c", first, number_of()))
    check_whole("imagenet_c", first, len(rows), IMAGES, partial, HELP)
    if count is not None and count > len(rows):
        raise UserError(
            f"data set 'imagenet_c': option 'images' is {count}, but {first} has {len(rows)}"
        )
    rows = rows.filter(pl.col("rank") < (IMAGES if count is None else count))
    return pl.concat([_domain(rows, domain, folder) for domain, folder in folders.items()])


def ranked(groups: Sequence[str], names: Sequence[str]) -> pl.DataFrame:
    """``group`` and ``name`` with ``rank``, each image's place in the fixed order of subsets."""
    stems = [os.path.splitext(name)[0] for name in names]
    texts = {"group": pl.String, "name": pl.String, "stem": pl.String, "place": pl.UInt64}
    columns = {"group": groups, "name": names, "stem": stems, "place": hashes(stems, SALT)}
    return (
        pl.DataFrame(columns, schema=texts)
        .sort("place", "stem")
        .with_columns(turn=pl.int_range(pl.len()).over("group"))
        .sort("turn", "place", "stem")
        .with_row_index("rank")
        .sort("group", "name")
        .select("group", "name", "stem", pl.col("rank").cast(pl.Int32))
    )


def _severities(values: Any) -> list[int]:
    """``values`` where they are a list of one or more severities, without repeats."""
    wrong = not isinstance(values, (list, tuple)) or not values
    if wrong or any(isinstance(value, bool) or value not in SEVERITIES for value in values):
        raise UserError(
            f"data set 'imagenet_c': option 'severities' is {values!r}; "
            "expected a list of one or more of 1, 2, 3, 4, 5"
        )
    return list(dict.fromkeys(values))


def _folder(root: Path, corruption: str, severity: int) -> Path:
    """The folder of a domain: in the data set's own, or in one named after its archive."""
    archive = next(name for name, inside in ARCHIVES.items() if corruption in inside)
    for place in (root / corruption, root / archive / corruption):
        if (place / str(severity)).is_dir():
            return place / str(severity)
        if place.is_dir():
            raise UserError(
                f"data set 'imagenet_c': {place} has no folder '{severity}'; "
                f"unpack {archive}.tar of zenodo.org/records/2235448 again"
            )
    what = f"no folder {corruption}, which comes in {archive}.tar"
    raise not_there("imagenet_c", root, what, {f"{archive}.tar": f"tar -xf {archive}.tar"}, HELP)


def _domain(rows: pl.DataFrame, domain: str, folder: Path) -> pl.DataFrame:
    """The rows of one corruption at one severity."""
    return rows.select(
        image=pl.lit(f"{domain}/") + pl.col("stem"),
        path=pl.concat_str(pl.lit(str(folder)), "group", "name", separator="/"),
        group="group",
        order=pl.lit(None, dtype=pl.Int32),
        domain=pl.lit(domain),
        split=pl.lit("test"),
        label=pl.col("group").replace_strict(number_of(), return_dtype=pl.Int16),
        rank="rank",
    )
