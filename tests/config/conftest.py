"""The documents of a configuration, in a folder of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from configured import documents


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Documents that a test may change before it loads them."""
    monkeypatch.chdir(tmp_path)
    return documents()
