"""An error message is tested by what it must name, not word by word."""

from __future__ import annotations


def check_named(line: str, *parts: object) -> None:
    """One line that names each of these: the file, the key, the number, what would be right."""
    assert "\n" not in line
    missing = [str(part) for part in parts if str(part) not in line]
    assert not missing, f"{line!r} does not name {missing}"
