"""Where the files are that come with the library: resources, rules, schemas.

In a checkout they lie beside it. An installed package has a copy of them in itself (``setup.py``).
"""

from __future__ import annotations

from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[1]
_INSTALLED = LIBRARY / "project"

ROOT = _INSTALLED if _INSTALLED.is_dir() else LIBRARY.parents[2]
RESOURCES = ROOT / "resources"
