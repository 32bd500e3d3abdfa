"""What a rule's code is: a digest over its script and the library modules that it imports.

Found by walking the imports of the source text, so nothing is executed. It goes into a rule's
``params``: an edit of ``figures`` leaves a GPU job alone, an edit of ``logits`` does not.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[1]

# Modules that can't change a number: wording of errors, progress bars, the package's version.
NEUTRAL = frozenset({"stamp", "stamp.core.errors", "stamp.core.progress"})


def module_file(name: str) -> Path | None:
    """The file of a module of the library, or None where ``name`` is not one."""
    parts = name.split(".")
    if parts[0] != "stamp":
        return None
    base = LIBRARY.joinpath(*parts[1:])
    for candidate in (base.with_suffix(".py"), base / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


@cache
def imports(path: Path) -> frozenset[str]:
    """The library modules that a source file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(), filename=str(path))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(name for name in found if module_file(name) is not None)


def reached(script: Path, modules: tuple[str, ...] = ()) -> dict[str, Path]:
    """All library modules that ``script`` and ``modules`` reach through imports, by name."""
    seen: dict[str, Path] = {}
    todo = [*imports(script), *modules]
    while todo:
        name = todo.pop()
        file = module_file(name)
        if name in seen or name in NEUTRAL:
            continue
        if file is None:
            raise ValueError(f"{script}: no library module '{name}'")
        seen[name] = file
        todo.extend(imports(file))
        if "." in name:
            todo.append(name.rpartition(".")[0])
    return seen


@cache
def code_digest(script: Path, *modules: str) -> str:
    """A digest of ``script``, of the library modules it imports, and of ``modules`` with theirs."""
    state = hashlib.sha256(script.read_bytes())
    for name, file in sorted(reached(script, modules).items()):
        state.update(name.encode() + b"\0" + file.read_bytes())
    return state.hexdigest()[:16]
