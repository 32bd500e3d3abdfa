"""A proposed study planned in a copy of the configuration, then written, all of it or nothing."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

from stamp.cli.appended_entries import appended
from stamp.cli.check_data.studies import check_source, check_targets
from stamp.cli.new_study.proposal import Proposal
from stamp.cli.new_study.study_text import dataset_text, study_text, zoo_text
from stamp.cli.runs.dry_run import by_stage, counted, dry_run
from stamp.cli.terminal.report_lines import ERROR, Report
from stamp.config.plan import read_plan
from stamp.core.artifacts import atomic_write
from stamp.core.errors import UserError

# Planning needs a model. This one is never run.
STAND_IN = {
    "stand-in": {
        "label": "stand-in",
        "family": "none",
        "objective": "none",
        "regime": "none",
        "trained_on": [],
        "load": {"source": "timm", "name": "resnet18", "preprocessing": {"size": 32}},
    }
}


@dataclass(frozen=True, slots=True)
class NewFiles:
    """The text of each file that is written, and what a run of the study would do."""

    texts: dict[Path, str]
    jobs: str


def texts_of(new: Proposal) -> dict[Path, str]:
    """The files of a proposal: the data sets' with new entries, the study's, the zoo's."""
    folders = new.plan.folders
    found = {one.key: one for one in (new.source, *new.targets.values()) if one.entry}
    files: dict[Path, str] = {}
    if found:
        added = "".join(dataset_text(one, new.name) for one in found.values())
        file = Path(folders.datasets)
        files[file] = appended(file, "data set", yaml.safe_load(added), added)
    files[Path(folders.studies) / f"{new.name}.yaml"] = study_text(new)
    files[Path(folders.zoo) / f"{new.name}.yaml"] = zoo_text(new.name)
    return files


def planned(new: Proposal) -> NewFiles:
    """The files of a proposal, after a dry run of the study with a model that stands in."""
    texts, real = texts_of(new), new.plan.folders
    with tempfile.TemporaryDirectory(prefix="stamp-study-") as name:
        folder = Path(name)
        trial = {part: str(folder / part) for part in ("studies", "zoo")}
        trial["datasets"] = str(folder / "datasets.yaml")
        if Path(real.datasets).is_file():
            shutil.copy2(real.datasets, trial["datasets"])
        for file, text in texts.items():
            copy = _trial_copy(file, Path(real.datasets), Path(real.zoo), folder)
            copy.parent.mkdir(exist_ok=True)
            copy.write_text(text)
        (folder / "zoo" / f"{new.name}.yaml").write_text(yaml.safe_dump(STAND_IN))
        try:
            plan = read_plan([new.name], folders=trial)
            report = Report()
            check_source(report, plan.studies[new.name], new.source.index)
            check_targets(report, plan.studies[new.name], plan, plan.seed)
            if wrong := [text for level, text in report.findings if level == ERROR]:
                raise UserError(wrong[0])
            where = ", ".join(f"{part}: {path}" for part, path in trial.items())
            jobs = dry_run(config=[f"studies=[{new.name}]", f"folders={{{where}}}"])
        except UserError as mistake:
            raise UserError(str(mistake).replace(f"{name}/", "")) from None
    return NewFiles(texts, counted(by_stage(jobs)))


def _trial_copy(file: Path, datasets: Path, zoo: Path, folder: Path) -> Path:
    """Where a file lies in the trial's folder."""
    if file == datasets:
        return folder / "datasets.yaml"
    return folder / ("zoo" if file.parent == zoo else "studies") / file.name


def write(new: NewFiles) -> None:
    """Write all files; if one can't be, those before it are as they were."""
    before = {file: file.read_bytes() if file.is_file() else None for file in new.texts}
    done: list[Path] = []
    try:
        for file, text in new.texts.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            done.append(file)
            with atomic_write(file) as part:
                part.write_text(text)
    except BaseException:
        for file in done:
            held = before[file]
            with suppress(OSError):
                if held is None:
                    file.unlink(missing_ok=True)
                elif file.read_bytes() != held:
                    file.write_bytes(held)
        raise
