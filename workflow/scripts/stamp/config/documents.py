"""YAML files as checked records: a mistake is one line with the file, the key and what is right.

Every configuration file is declared once, as a :class:`Section`: types, defaults and limits. The
schemas that editors use and the tables of ``config/README.md`` are written from the same
declarations (``stamp.config.reference``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Self, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic import model_validator as validator

from stamp.core.errors import UserError, suggest
from stamp.core.shown_text import why_refused


def plain(value: Any) -> Any:
    """Builtins with sorted keys: what may stand in a rule's ``params``."""
    return json.loads(json.dumps(value, sort_keys=True))


class Section(BaseModel):
    """A mapping of a configuration file: unknown keys, other types and empty values are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @validator(mode="before")
    @classmethod
    def _without_empty_values(cls, given: Any) -> Any:
        for key, value in given.items() if isinstance(given, Mapping) else ():
            if value is None:
                raise ValueError(f"the key '{key}' has no value")
        return given

    @validator(mode="after")
    def _with_what_keys_need(self) -> Self:
        rules: Any = self.model_config.get("json_schema_extra") or {}
        for key, others in rules.get("dependentRequired", {}).items():
            for other in others if key in self.model_fields_set else ():
                if other not in self.model_fields_set:
                    raise ValueError(f"'{key}' needs the key '{other}' beside it")
        if len(self.model_fields_set) < rules.get("minProperties", 0):
            raise ValueError(f"a key is needed: {', '.join(type(self).model_fields)}")
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """All values with their defaults, as plain builtins with sorted keys."""
        return plain(self.model_dump())


Declared = TypeVar("Declared", bound=BaseModel)


def needing(at_least: int = 0, **keys: list[str]) -> ConfigDict:
    """Keys that need others beside them, and how many keys a mapping has at least."""
    return ConfigDict(
        json_schema_extra={"dependentRequired": keys, "minProperties": at_least}  # type: ignore[dict-item]
    )


def _distinct(values: list[Any]) -> list[Any]:
    for place, value in enumerate(values):
        if value in values[:place]:
            raise ValueError(f"'{value}' is listed twice")
    return values


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def by_key(mapping: dict[str, Any]) -> dict[str, Any]:
    """A mapping with its keys sorted."""
    return dict(sorted(mapping.items()))


def _shown(text: str) -> str:
    if reason := why_refused(text):
        raise ValueError(f"{text!r} {reason}")
    return text


def _sentence(text: str) -> str:
    return _shown(" ".join(text.split()))


Name = Annotated[str, AfterValidator(_shown)]  # of what tables, figures and pages show
Sentence = Annotated[str, AfterValidator(_sentence)]  # which YAML may fold
Value = TypeVar("Value")
Distinct = Annotated[
    list[Value], AfterValidator(_distinct), Field(json_schema_extra={"uniqueItems": True})
]
Names = Annotated[Distinct[Name], Field(min_length=1)]
OneOrMore = Annotated[Names, BeforeValidator(_as_list, json_schema_input_type=str | list[str])]
ByKey = Annotated[dict[str, Value], AfterValidator(by_key)]


def parsed(declaration: type[Declared], document: Any, where: str) -> Declared:
    """A document as the record that it is declared to be; a mistake is raised in one line."""
    try:
        return declaration.model_validate(document)
    except ValidationError as error:
        # a mistyped key is also a missing one: say the first, which has a suggestion
        mistakes = sorted(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
        raise UserError(f"{where}: {_explain(declaration, mistakes[0])}") from None


def _explain(declaration: type[BaseModel], mistake: Any) -> str:
    """One mistake in words, with a suggestion where a name was mistyped."""
    kind, path = mistake["type"], tuple(mistake["loc"])
    about_key = kind in ("extra_forbidden", "missing")
    shown, inner = _located(declaration, path[:-1] if about_key else path)
    at = f"{'.'.join(shown)}: " if shown else ""
    if kind == "extra_forbidden":
        known = getattr(inner, "model_fields", {})
        return f"{at}unknown key '{path[-1]}': {suggest(str(path[-1]), known)}"
    if kind == "missing":
        return f"{at}the key '{path[-1]}' is missing"
    if kind == "literal_error":
        options = re.findall(r"'([^']*)'|(\d+)", mistake["ctx"]["expected"])
        known = suggest(str(mistake["input"]), [text or number for text, number in options])
        return f"{at}unknown value '{mistake['input']}': {known}"
    if kind == "union_tag_invalid":
        tag, tags = mistake["ctx"]["tag"], re.findall(r"'([^']*)'", mistake["ctx"]["expected_tags"])
        return f"{at}unknown source '{tag}': {suggest(tag, tags)}"
    if kind == "union_tag_not_found":
        return f"{at}the key 'source' is missing"
    if kind == "value_error":
        return f"{at}{mistake['ctx']['error']}"
    text = mistake["msg"].removeprefix("Input ")
    return f"{at}{mistake['input']!r} {text}"


def _located(annotation: Any, path: Sequence[Any]) -> tuple[list[str], Any]:
    """The keys of a path into a declaration, without the parts that name a member of a union."""
    shown: list[str] = []
    annotation = _bare(annotation)
    for part in path:
        members = get_args(annotation)
        if get_origin(annotation) in (Union, UnionType):
            annotation = next(one for one in members if _tag(one) == part)
            continue
        shown.append(str(part))
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            fields = annotation.model_fields
            annotation = _bare(fields[part].annotation) if part in fields else None
        else:  # the items of a list, the values of a dictionary
            annotation = _bare(members[-1]) if members else None
    return shown, annotation


def _bare(annotation: Any) -> Any:
    """A type without its limits, without `None`; of a file of entries, what the file is."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        members = [one for one in get_args(annotation) if one is not type(None)]
        return _bare(members[0]) if len(members) == 1 else annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        root = annotation.model_fields.get("root")
        return _bare(root.annotation) if root else annotation
    if hasattr(annotation, "__value__"):
        return _bare(annotation.__value__)
    return annotation


def _tag(declaration: Any) -> str:
    """The `source` by which a member of a union is told."""
    return str(get_args(declaration.model_fields["source"].annotation)[0])


class _UniqueKeys(yaml.SafeLoader):
    """YAML in which a key given twice is a mistake, not the last one silently."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, (list, dict)):
                break  # which the parser itself refuses
            if key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key '{key}' stands twice", problem_mark=key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path, what: str) -> Any:
    """A YAML file's content; what is not there or not YAML is a user's mistake."""
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8") from None
    except PermissionError:
        raise UserError(f"{path}: no permission to read it") from None
    except FileNotFoundError:
        others = [file.stem for file in path.parent.glob("*.yaml")] if path.parent.is_dir() else []
        raise UserError(
            f"unknown {what} '{path.stem}' (no {path}): {suggest(path.stem, others)}"
        ) from None
    try:
        return yaml.load(text, Loader=_UniqueKeys)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{path}, line {line}: {error.problem or 'not valid YAML'}") from None
    except yaml.YAMLError:  # a character that YAML does not know
        raise UserError(f"{path}: not valid YAML") from None
