"""What a job's code is: a digest over the definitions that its script reaches.

Read from the syntax tree, nothing is executed. From the script on, every function, class and
constant of the library that is named is followed to its definition, and so on from there. What
can't change a result does not count: docstrings, comments, formatting, annotations of arguments,
the wording of errors, and where a definition lives. So rewording, moving a function or renaming a
module reruns nothing; a changed statement reruns the jobs that use it.

The digest goes into a rule's ``params``. Modules that are found by a name at run time (a loader, an
adapter, an analysis) can't be seen here: a rule names them, and they count whole.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[1]
PACKAGE = "stamp"

# Modules that can't change a number: wording of errors, progress bars.
NEUTRAL = frozenset({"stamp.core.errors", "stamp.core.progress"})

MODULE_PATH = re.compile(rf"{PACKAGE}(\.\w+)*\.?")
WHOLE = "*"  # every definition of a module


@dataclass(frozen=True, slots=True)
class DefinitionName:
    """A definition of a file by its name; the name ``*`` stands for all of them."""

    file: Path
    name: str


@dataclass(slots=True)
class SourceFile:
    """What a source file defines, imports from the library, and does while it is imported."""

    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imported: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    loose: list[ast.stmt] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition as text without what can't matter, and what it names in the library."""

    digest: str
    names: tuple[DefinitionName, ...]


def module_file(name: str) -> Path | None:
    """The file of a module of the library, or None where ``name`` is not one."""
    parts = name.split(".")
    if parts[0] != PACKAGE:
        return None
    base = LIBRARY.joinpath(*parts[1:])
    for candidate in (base.with_suffix(".py"), base / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


@cache
def read(file: Path) -> SourceFile:
    """A source file's definitions by name, with its imports from the library apart."""
    tree = ast.parse(file.read_text(), filename=str(file))
    source = SourceFile()
    for node in _statements(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            source.imported.update(_own_imports(node))
    for statement in tree.body:
        names = _defined(statement)
        for name in names:
            source.definitions.setdefault(name, []).append(statement)
        if not names and not _means_nothing(statement):
            source.loose.append(statement)
    return source


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements in a tree, also those of functions and branches; no expressions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield child
            yield from _statements(child)


def _own_imports(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, tuple[str, str | None]]]:
    """What an import of the library binds: a name to a module, or to a definition of one."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if module_file(alias.name):
                name = alias.name if alias.asname else PACKAGE
                yield alias.asname or PACKAGE, (name, None)
    elif node.module and node.level == 0 and module_file(node.module):
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            found = (inner, None) if module_file(inner) else (node.module, alias.name)
            yield alias.asname or alias.name, found


def _defined(statement: ast.stmt) -> list[str]:
    """The names that a statement of a module defines; imports from elsewhere are definitions."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        nodes = [node for target in targets for node in ast.walk(target)]
        return [node.id for node in nodes if isinstance(node, ast.Name)]
    if isinstance(statement, ast.Import | ast.ImportFrom) and not _is_own(statement):
        return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
    return []


def _is_own(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__" or (node.module or "").split(".")[0] == PACKAGE
    return all(alias.name.split(".")[0] == PACKAGE for alias in node.names)


def _means_nothing(statement: ast.stmt) -> bool:
    """Whether a statement does nothing when a module is imported."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return _is_own(statement)
    if isinstance(statement, ast.If) and isinstance(statement.test, ast.Name):
        return statement.test.id == "TYPE_CHECKING"
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


class _Normaliser:
    """Writes a syntax tree down without what can't matter, and notes what it names."""

    def __init__(self, file: Path):
        self.file, self.source = file, read(file)
        self.text: list[str] = []
        self.names: list[DefinitionName] = []

    def put(self, node: object) -> None:
        if isinstance(node, ast.Name | ast.Attribute) and (place := self._place(node)):
            self.text.append(f"<{'' if place.name == WHOLE else place.name}>")
            self.names.append(place)
        elif isinstance(node, ast.AST):
            self.text.append(f"({type(node).__name__}")
            for name in node._fields:
                value = self._kept(node, name)
                if value is not None:
                    self.text.append(f" {name}=")
                    self.put(value)
            self.text.append(")")
        elif isinstance(node, list):
            for one in node:
                self.put(one)
            self.text.append(";")
        elif isinstance(node, str) and MODULE_PATH.fullmatch(node):
            self.text.append(repr(PACKAGE))
        else:
            self.text.append(repr(node))

    def _kept(self, node: ast.AST, name: str) -> object:
        """A part of a node; None where it can't change what the code does."""
        value = getattr(node, name, None)
        if name in ("ctx", "returns", "type_comment", "kind"):
            return None
        if isinstance(node, ast.arg) and name == "annotation":
            return None
        if isinstance(node, ast.Raise) and name == "exc" and isinstance(value, ast.Call):
            return value.func  # not the wording
        if name == "body" and isinstance(value, list):
            kept = [one for one in value if not _means_nothing(one)]
            return kept or value[:0]
        return value

    def _place(self, node: ast.Name | ast.Attribute) -> DefinitionName | None:
        """The definition of the library that a name, or a chain of attributes, stands for."""
        chain: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            chain.insert(0, inner.attr)
            inner = inner.value
        if not isinstance(inner, ast.Name):
            return None
        if inner.id in self.source.imported:
            module, name = self.source.imported[inner.id]
            while name is None and chain and module_file(f"{module}.{chain[0]}"):
                module = f"{module}.{chain.pop(0)}"
            if name is None and chain:
                name = chain.pop(0)
            # the attribute of a definition: written down as such, its inner part found in turn
            return None if chain else _followed(module, name)
        if not chain and inner.id in self.source.definitions:
            return DefinitionName(self.file, inner.id)
        return None


def _followed(module: str, name: str | None) -> DefinitionName | None:
    """Where a name of a module is really defined; all of the module where that can't be said."""
    file = module_file(module)
    if file is None or module in NEUTRAL:
        return None
    source = read(file)
    if name is None or name in source.definitions:
        return DefinitionName(file, WHOLE if name is None else name)
    if name in source.imported:
        return _followed(*source.imported[name])
    return DefinitionName(file, WHOLE)


@cache
def definition(place: DefinitionName) -> Definition:
    """One definition of a file, or what the file does when it is imported (the name ``""``)."""
    reader = _Normaliser(place.file)
    if place.name:
        reader.put(reader.source.definitions[place.name])
    else:
        reader.put(reader.source.loose)
    text = hashlib.sha256("".join(reader.text).encode()).hexdigest()[:16]
    return Definition(text, tuple(reader.names))


def reached(script: Path, modules: tuple[str, ...] = ()) -> set[DefinitionName]:
    """Every definition that ``script`` and ``modules`` reach."""
    todo = [DefinitionName(script, WHOLE)]
    for name in modules:
        file = module_file(name)
        if file is None:
            raise ValueError(f"{script}: no library module '{name}'")
        todo.append(DefinitionName(file, WHOLE))
    return _reached_from(todo)


def _reached_from(todo: list[DefinitionName]) -> set[DefinitionName]:
    seen: set[DefinitionName] = set()
    while todo:
        place = todo.pop()
        if place.name == WHOLE:
            todo += [DefinitionName(place.file, name) for name in read(place.file).definitions]
            place = DefinitionName(place.file, "")
        if place in seen:
            continue
        seen.add(place)
        todo += [*definition(place).names, DefinitionName(place.file, "")]
    return seen


@cache
def code_digest(script: Path, *modules: str) -> str:
    """A digest of all that ``script`` and the modules named beside it reach."""
    return _digest(reached(script, modules))


@cache
def definition_digest(module: str, name: str) -> str:
    """A digest of one definition of a library module and all that it reaches."""
    place = _followed(module, name)
    if place is None or place.name != name:
        raise ValueError(f"module '{module}' does not define '{name}'")
    return _digest(_reached_from([place]))


def _digest(places: set[DefinitionName]) -> str:
    lines = []
    for place in places:
        found = definition(place)
        named = [definition(_own(one)).digest for one in found.names]
        lines.append(" ".join([found.digest, *named]))
    return hashlib.sha256("\n".join(sorted(set(lines))).encode()).hexdigest()[:16]


def _own(place: DefinitionName) -> DefinitionName:
    return DefinitionName(place.file, "") if place.name == WHOLE else place
