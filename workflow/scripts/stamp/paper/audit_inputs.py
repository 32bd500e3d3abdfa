"""What an audit may find beside the shipped tables; planning reads it, so it imports little."""

from __future__ import annotations

import hashlib
from pathlib import Path

MEDICAL = ("medical", "medical_paper")
NATURAL = ("natural",)
STUDIES = (*MEDICAL, *NATURAL)
FILES = ("statistics/main.csv", "leaderboard.csv")
TRAINING_LIST = "train_val_list.txt"


def finished_studies(results: str | Path) -> dict[str, str]:
    """The paper's studies whose results are there, each with a digest of what is compared."""
    found = {}
    for study in STUDIES:
        files = [Path(results, study, name) for name in FILES]
        if all(file.is_file() for file in files):
            text = b"".join(file.read_bytes() for file in files)
            found[study] = hashlib.sha256(text).hexdigest()[:16]
    return found


def training_list(root: str | Path | None) -> list[str]:
    """NIH's official list of training images, where the user's folder has it."""
    file = Path(root, TRAINING_LIST) if root else None
    return [str(file)] if file and file.is_file() else []
