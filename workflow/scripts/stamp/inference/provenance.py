"""What a result was made from, as digests: a result is kept as long as they do not change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stamp.core.artifacts import array_metadata, read_json, table_metadata
from stamp.core.errors import UserError
from stamp.core.file_digest import sha256_of

PREFIX = "weights_"  # of what metadata say of the files that a model was read from


def key_of(made_from: Mapping[str, Any]) -> str:
    """A digest of everything that a result depends on."""
    text = json.dumps(made_from, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _listed(files: Any) -> list[str]:
    """The files of one input of a rule, which is a path, several, or nothing."""
    return [files] if isinstance(files, str) else [str(file) for file in files or ()]


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files that a model is read from, each with the SHA-256 that the job was planned with.

    ``weights`` is the file that its loader gets, ``record`` what the rule that trained it wrote.
    """

    weights: Path | None = None
    digests: Mapping[str, str] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_job(cls, files: Any, digests: Sequence[str]) -> ModelFiles:
        """Those of a rule with the inputs ``weights``, ``further`` and ``trained``.

        ``digests`` are of the user's files among them; that of trained weights is in their record.
        """
        weights, further = _listed(files.get("weights")), _listed(files.get("further"))
        trained = _listed(files.get("trained"))
        record = read_json(trained[0]) if trained else {}
        known = [record["weights_sha256"], *digests] if trained else list(digests)
        named = dict(zip([*weights, *further], known, strict=True))
        return cls(Path(weights[0]) if weights else None, named, record)

    def check(self) -> None:
        """Refuse files that are not those of the plan, and a head of another backbone.

        To be called after the model was read, so that what was planned is what was read.
        """
        for file, planned in self.digests.items():
            if (found := sha256_of(file)) != planned:
                raise UserError(
                    f"{file}: was replaced after the job was planned (sha256 {found}, planned "
                    f"{planned}); run again"
                )
        backbone = self.record.get("backbone_sha256")
        if backbone is not None and backbone not in self.digests.values():
            raise UserError(
                f"{self.weights}: made with a backbone of sha256 '{backbone}', but the backbone's "
                f"file is another; delete it and run again"
            )

    @property
    def card(self) -> dict[str, str]:
        """What the metadata of a model's outputs say of its files."""
        if not self.digests:
            return {}
        return {
            f"{PREFIX}file": " ".join(self.digests),
            f"{PREFIX}sha256": " ".join(self.digests.values()),
        }


def weights_of(path: str | Path) -> dict[str, str]:
    """What the metadata of one model's output say of its weights."""
    name = str(path)
    if name.endswith(".json"):
        found: Mapping[str, Any] = read_json(path)
    else:
        found = table_metadata(path) if name.endswith(".parquet") else array_metadata(path)
    return {key: str(value) for key, value in found.items() if key.startswith(PREFIX)}


def same_weights(paths: Iterable[str | Path]) -> dict[str, str]:
    """The weights that outputs of one model were made with; outputs of different ones are refused.

    Outputs that say nothing of a file or a commit of the hub agree with any.
    """
    known: dict[str, tuple[str, str | Path]] = {}
    for path in paths:
        for key, value in weights_of(path).items():
            expected, other = known.setdefault(key, (value, path))
            if value != expected:
                raise UserError(
                    f"{path}: made with {key} '{value}', but {other} with '{expected}'; "
                    "delete the older one and run again"
                )
    return {key: value for key, (value, _) in known.items()}
