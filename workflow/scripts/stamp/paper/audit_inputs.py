"""What an audit may find beside the shipped tables; planning reads it, so it imports little."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

MEDICAL = ("medical", "medical_paper")
NATURAL = ("natural",)
STUDIES = (*MEDICAL, *NATURAL)
FILES = ("statistics/main.csv", "leaderboard.csv")
BASELINES = "analyses/baselines.csv"  # compared too where a medical study has it
TRAINING_LIST = "train_val_list.txt"


def finished_studies(results: str | Path) -> dict[str, str]:
    """The paper's studies whose results are there, each with a digest of what is compared."""
    found = {}
    for study in STUDIES:
        files = [Path(results, study, name) for name in FILES]
        if all(file.is_file() for file in files):
            more = Path(results, study, BASELINES)
            text = b"".join(file.read_bytes() for file in [*files, *([more] * more.is_file())])
            found[study] = hashlib.sha256(text).hexdigest()[:16]
    return found


def with_predictors(results: str | Path, studies: Iterable[str]) -> list[str]:
    """The medical studies among finished ones that compared predictors."""
    return [
        name for name in studies if name in MEDICAL and Path(results, name, BASELINES).is_file()
    ]


def training_list(root: str | Path | None) -> list[str]:
    """NIH's official list of training images, where the user's folder has it."""
    file = Path(root, TRAINING_LIST) if root else None
    return [str(file)] if file and file.is_file() else []
