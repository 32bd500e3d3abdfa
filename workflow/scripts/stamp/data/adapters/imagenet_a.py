"""ImageNet-A: 7,500 natural photographs of 200 ImageNet classes that a ResNet-50 gets wrong.

A file's name holds that network's prediction, not the class: the class is the folder's.
Predictions are scored over the logits of its 200 classes.
Hendrycks et al., "Natural adversarial examples", CVPR 2021.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from stamp.data.imagenet_folders import TARGET_OPTIONS, target_index

HELP = (
    "ImageNet-A is open: unpack people.eecs.berkeley.edu/~hendrycks/imagenet-a.tar in the data "
    "set's folder, which gives imagenet-a/<wnid>/*.jpg"
)
OPTIONS = TARGET_OPTIONS
IMAGES = 7_500


def index(options: Mapping[str, Any], root: Path, seed: int) -> pl.DataFrame:
    """The index of all images, by class: ``group`` is the WordNet id, ``label`` its number.

    The whole set has 7,500 images; ``partial: true`` takes what is there.
    """
    return target_index("imagenet_a", options, root, IMAGES, HELP)
