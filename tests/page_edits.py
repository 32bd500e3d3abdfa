"""The files that a page of the documentation tells its reader to write, and where."""

from __future__ import annotations

import re
from pathlib import Path

BLOCK = re.compile(r"^```(?:python|rst|yaml)\n# (\S+), (.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def follow(page: Path, folder: Path) -> list[Path]:
    """Do in ``folder`` what the page says; the files that were written come back."""
    written = []
    for name, where, text in BLOCK.findall(page.read_text()):
        file = folder / name
        if where == "a new file":
            file.parent.mkdir(exist_ok=True)
            assert not file.exists(), file
            file.write_text(text)
        elif where == "at the end":
            file.write_text(file.read_text().rstrip("\n") + "\n" + text)
        else:
            before = where.removeprefix('after "').removesuffix('"')
            lines = file.read_text().splitlines(keepends=True)
            (place,) = [at for at, line in enumerate(lines) if line.strip() == before]
            file.write_text("".join([*lines[: place + 1], text, *lines[place + 1 :]]))
        written.append(file)
    return written
