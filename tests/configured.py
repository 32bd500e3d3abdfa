"""The configuration of the small project as documents that a test may change."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from project import DATASETS, DIGITS, PHANTOM, ZOOS

from stamp.config import plan
from stamp.config.study import Study
from stamp.core.errors import UserError

CONFIG = {"studies": ["small_phantom"], "seed": 0}


def documents() -> dict[str, Any]:
    """The documents by file; :func:`load` writes them and reads them back."""
    texts = {"title": "t", "licence": "none", "citation": "none"}
    found = {
        "datasets.yaml": {key: {**texts, **each} for key, each in DATASETS.items()},
        "studies/small_phantom.yaml": PHANTOM,
        "studies/small_digits.yaml": DIGITS,
        "zoo/small_phantom.yaml": ZOOS["small_phantom"],
        "zoo/small_digits.yaml": ZOOS["small_digits"],
    }
    return copy.deepcopy(found)


def load(files: dict[str, Any], **changes: Any) -> plan.Plan:
    """The plan of documents, written into the current folder."""
    for name, document in files.items():
        path = Path("config") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return plan.load({**CONFIG, **changes})


def mistake(files: dict[str, Any], **changes: Any) -> str:
    """The one line that is said of documents with a mistake."""
    with pytest.raises(UserError) as caught:
        load(files, **changes)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def phantom(files: dict[str, Any]) -> Study:
    """The small phantom study."""
    return load(files).studies["small_phantom"]


def digits(files: dict[str, Any]) -> Study:
    """The small study of digits."""
    return load(files, studies=["small_digits"]).studies["small_digits"]
