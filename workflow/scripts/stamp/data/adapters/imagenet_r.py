"""ImageNet-R: 30,000 renditions (art, cartoons, sculptures, ...) of 200 ImageNet classes.

Predictions are scored over the logits of its 200 classes, 86 of which are also ImageNet-A's.
Hendrycks et al., "The many faces of robustness", ICCV 2021.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from stamp.data.imagenet_folders import TARGET_OPTIONS, target_index

HELP = (
    "ImageNet-R is open: unpack people.eecs.berkeley.edu/~hendrycks/imagenet-r.tar in the data "
    "set's folder, which gives imagenet-r/<wnid>/*.jpg"
)
OPTIONS = TARGET_OPTIONS
IMAGES = 30_000


def index(options: Mapping[str, Any], root: Path, seed: int) -> pl.DataFrame:
    """The index of all images, by class: ``group`` is the WordNet id, ``label`` its number.

    The whole set has 30,000 images; ``partial: true`` takes what is there. Extra column:
    ``rendition``, the kind of image that the file's name begins with (``art_0.jpg``), null where
    a name has another form.
    """
    rows = target_index("imagenet_r", options, root, IMAGES, HELP)
    return rows.with_columns(rendition=pl.col("image").str.extract(r"/([a-z]+)_\d+$"))
