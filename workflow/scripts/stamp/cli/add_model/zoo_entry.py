"""New entries of a zoo file: checked by forward passes, planned by a dry run, then written.

Nothing is written before all of that went well. The entries are then put at the end of the zoo file
as text, and the file is replaced as a whole: its comments and formatting stay.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from stamp.cli.add_model.forward_pass import Check, check, unknown_splits
from stamp.cli.appended_entries import appended
from stamp.cli.runs.dry_run import DueJob, by_stage, counted, dry_run
from stamp.config import plan as config
from stamp.config.documents import parsed, read_yaml
from stamp.config.study_file import StudyFile
from stamp.core.artifacts import atomic_write
from stamp.core.errors import UserError, suggest


@dataclass(frozen=True, slots=True)
class Target:
    """Where an entry goes: the study, its document, and the zoo file."""

    study: str
    document: Mapping[str, Any]
    folders: Mapping[str, str]
    file: Path


def target_of(study: str, zoo: str | None) -> Target:
    """The zoo file of a study that a new entry goes to: the one named, or the study's only one."""
    folders = config.read_project().folders.settings
    file = Path(folders["studies"]) / f"{study}.yaml"
    document = read_yaml(file, "study")
    parsed(StudyFile, document, str(file))
    zoos = document["zoo"]
    if zoo is None and len(zoos) > 1:
        raise UserError(f"study '{study}' has the zoos {', '.join(zoos)}: say which with --zoo")
    if zoo is not None and zoo not in zoos:
        raise UserError(f"study '{study}' has no zoo '{zoo}': {suggest(zoo, zoos)}")
    return Target(study, document, folders, Path(folders["zoo"]) / f"{zoo or zoos[0]}.yaml")


def as_text(key: str, entry: Mapping[str, Any]) -> str:
    """An entry as it stands in a zoo file; lists and the innermost mappings are on one line."""
    return yaml.safe_dump(
        {key: dict(entry)}, sort_keys=False, default_flow_style=None, width=100, allow_unicode=True
    )


@contextmanager
def tried(target: Target, text: str) -> Iterator[dict[str, str]]:
    """The configuration's folders, with a copy of the zoos in which the file has this text."""
    with tempfile.TemporaryDirectory(prefix="stamp-zoo-") as folder:
        for file in Path(target.folders["zoo"]).glob("*.yaml"):
            shutil.copy2(file, folder)
        (Path(folder) / target.file.name).write_text(text)
        try:
            yield {**target.folders, "zoo": folder}
        except UserError as mistake:
            line = str(mistake).replace(folder, str(target.file.parent))
            raise UserError(line) from None


def planned(jobs: Sequence[DueJob], study: str, keys: Sequence[str]) -> list[str]:
    """A dry run in a few lines: new models' jobs, those of all models together, and the rest."""
    ours = [job for job in jobs if job.wildcards.get("study") in (study, None)]
    own = [job for job in ours if job.wildcards.get("model") in keys]
    together = [job for job in ours if "model" not in job.wildcards]
    others = [job for job in ours if job.wildcards.get("model") not in (*keys, None)]
    named = keys[0] if len(keys) == 1 else f"{len(keys)} models"
    lines = [f"{named}: {counted(by_stage(own)) or 'nothing'}"]
    if together:
        lines.append(f"for all models: {counted(by_stage(together))}")
    if others:
        models = sorted({job.wildcards["model"] for job in others})
        named = ", ".join(models) if len(models) < 4 else f"{len(models)} other models"
        lines.append(f"due too, whatever is added: {len(others)} jobs of {named}")
    return lines


@dataclass(frozen=True, slots=True)
class Addition:
    """New entries, what their checks and a dry run showed, and the new ``text`` of the zoo file."""

    entries: str
    text: str
    checked: dict[str, list[str]]
    planned: list[str]


def add(target: Target, entries: Mapping[str, Mapping[str, Any]]) -> Addition:
    """Check entries by schema, forward passes and one dry run; the zoo file is not touched."""
    new = {key: {**entry, "load": dict(entry["load"])} for key, entry in entries.items()}
    checked: dict[str, list[str]] = {}
    with tried(target, _with(target, new)) as folders:
        plan = config.read_plan([target.study], folders=folders)
        for key in new:
            found = _checked(plan, target, key)
            checked[key] = [*found.words, *unknown_splits(plan, target.study, key)]
            if found.revision and "revision" not in new[key]["load"]:
                new[key]["load"]["revision"] = found.revision
    text = _with(target, new)
    with tried(target, text) as folders:
        where = ", ".join(f"{name}: {path}" for name, path in folders.items())
        jobs = dry_run(config=[f"studies=[{target.study}]", f"folders={{{where}}}"])
    return Addition(_texts(new), text, checked, planned(jobs, target.study, list(new)))


def _texts(entries: Mapping[str, Mapping[str, Any]]) -> str:
    return "".join(as_text(key, entry) for key, entry in entries.items())


def _with(target: Target, entries: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of the zoo file with new entries at its end."""
    return appended(target.file, "model", entries, _texts(entries))


def _checked(plan: config.Plan, target: Target, key: str) -> Check:
    """What a forward pass of one new model shows."""
    if key not in plan.studies[target.study].models:
        raise UserError(
            f"{target.folders['studies']}/{target.study}.yaml: models: the study takes only "
            f"those that it lists: add '{key}' to them first"
        )
    try:
        return check(plan, target.study, key)
    except UserError as mistake:
        own = str(mistake).removeprefix(f"model '{key}': ")
        raise UserError(f"model '{key}': {own}") from None


def write(target: Target, addition: Addition) -> None:
    """Put the entries at the end of the zoo file."""
    with atomic_write(target.file) as part:
        part.write_text(addition.text)
