"""The changes of stress tests by name, read from the module that defines them.

Its syntax tree is read and nothing is imported, so that planning needs no torch and a new change is
one function there.
"""

from __future__ import annotations

import ast
from functools import cache

from stamp.core.code_digest import module_file

MODULE = "stamp.images.stress_changes"


@cache
def changes() -> dict[str, str]:
    """Every change that a study can name, with one line on it."""
    file = module_file(MODULE)
    if file is None:
        raise ValueError(f"no library module '{MODULE}'")
    return {
        node.name: (ast.get_docstring(node) or "").partition("\n")[0]
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
