"""A new model: its entry from what it is, checked by one forward pass, planned, then written.

Nothing is written before all of that went well, and then as text at the end of the zoo file, which
is replaced whole: its comments and its formatting stay.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from stamp.cli.dry_run import Job, by_stage, counted, dry_run
from stamp.config import plan as config
from stamp.core.artifacts import atomic_write
from stamp.core.errors import UserError, suggest

IMAGES = 8
Block = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """Where an entry goes: the study, its document, and the zoo file."""

    study: str
    document: Mapping[str, Any]
    folders: Mapping[str, str]
    file: Path


def target_of(study: str, zoo: str | None) -> Target:
    """The zoo file of a study that a new entry goes to: the one named, or the study's only one."""
    main = config.read_yaml(Path(config.CONFIG), "configuration")
    folders = {**config.FOLDERS, **main.get("folders", {})}
    document = config.read_yaml(Path(folders["studies"]) / f"{study}.yaml", "study")
    config.check("study", document, f"{folders['studies']}/{study}.yaml")
    zoos = document["zoo"]
    if zoo is None and len(zoos) > 1:
        raise UserError(f"study '{study}' has the zoos {', '.join(zoos)}: say which with --zoo")
    if zoo is not None and zoo not in zoos:
        raise UserError(f"study '{study}' has no zoo '{zoo}': {suggest(zoo, zoos)}")
    return Target(study, document, folders, Path(folders["zoo"]) / f"{zoo or zoos[0]}.yaml")


# --- what the block says -------------------------------------------------------------------------


def load_block(kind: str, name: str, given: Mapping[str, Any], pixels: Mapping[str, Any]) -> Block:
    """The ``load`` block of a model: what was given, and what timm or the file itself knows.

    ``pixels`` are the study's; of them only those stand in the block that differ or are needed.
    """
    told = {key: value for key, value in given.items() if value is not None and value != {}}
    if "file" in told and kind not in ("timm", "torchxrayvision", "python"):
        raise UserError(f"--file is not for --{kind}, which names its file itself")
    return {**BLOCKS[kind](name, told, pixels), **told}


def _timm(name: str, told: Block, pixels: Mapping[str, Any]) -> Block:
    from stamp.models.backbones import published

    record = published(name)
    own = {key: pixels[key] for key in ("size", "channels") if key in pixels}
    if record is not None and "file" not in told:
        channels, size, _ = record.input_size
        own = {"size": size, "channels": channels, "interpolation": record.interpolation}
        own["crop"] = record.crop_pct
    return {
        "source": "timm",
        "name": name,
        "preprocessing": {**own, **told.pop("preprocessing", {})},
    }


def _xray(name: str, told: Block, pixels: Mapping[str, Any]) -> Block:
    from stamp.models.loaders.torchxrayvision import published_at

    address = {} if "file" in told else {"url": published_at(name)}
    own = {"size": 224, "channels": 1, **told.pop("preprocessing", {})}
    return {"source": "torchxrayvision", "weights": name, **address, "preprocessing": own}


def _checkpoint(name: str, told: Block, pixels: Mapping[str, Any]) -> Block:
    if "arch" not in told:
        raise UserError("--checkpoint needs --arch, the timm architecture that the weights are of")
    return {"source": "checkpoint", "arch": told.pop("arch"), "file": name}


def _normalised(kind: str, told: Mapping[str, Any]) -> None:
    if not {"mean", "std"} <= set(told):
        raise UserError(
            f"--{kind} needs --mean and --std, of pixels on [0, 1], a number a channel "
            "(0 and 1 if the model does that itself)"
        )


def _torchscript(name: str, told: Block, pixels: Mapping[str, Any]) -> Block:
    _normalised("torchscript", told)
    return {"source": "torchscript", "file": name}


def _onnx(name: str, told: Block, pixels: Mapping[str, Any]) -> Block:
    from stamp.models.loaders.onnx import Sessions

    _normalised("onnx", told)
    if not Path(name).is_file():
        raise UserError(f"{name}: no such file")
    shape = Sessions(Path(name), told.get("output")).input.shape
    block: Block = {"source": "onnx", "file": name}
    size = pixels.get("size")
    if len(shape) == 4 and isinstance(shape[-1], int):  # any other shape is refused by the loader
        size = shape[-1]
    if size != pixels.get("size"):
        block["preprocessing"] = {"size": size, **told.pop("preprocessing", {})}
    return block


def _python(name: str, told: Block, pixels: Mapping[str, Any]) -> Block:
    _normalised("python", told)
    return {"source": "python", "function": name}


def _logits(name: str, told: Block, pixels: Mapping[str, Any]) -> Block:
    return {"source": "logits", "file": name}


BLOCKS = {
    "timm": _timm,
    "torchxrayvision": _xray,
    "checkpoint": _checkpoint,
    "torchscript": _torchscript,
    "onnx": _onnx,
    "python": _python,
    "logits": _logits,
}


# --- the text ------------------------------------------------------------------------------------


def as_text(key: str, entry: Mapping[str, Any]) -> str:
    """An entry as it stands in a zoo file; lists and the innermost mappings are on one line."""
    return yaml.safe_dump(
        {key: dict(entry)}, sort_keys=False, default_flow_style=None, width=100, allow_unicode=True
    )


def appended(file: Path, key: str, entry: Mapping[str, Any]) -> str:
    """The text of a zoo file with an entry more at its end, checked to mean just that."""
    text = file.read_text() if file.is_file() else ""
    held = (config.read_yaml(file, "zoo") or {}) if text else {}
    if key in held:
        raise UserError(f"{file}: model '{key}' is there already")
    new = text + ("" if not text or text.endswith("\n") else "\n") + as_text(key, entry)
    try:
        means = yaml.safe_load(new)
    except yaml.YAMLError:
        means = None
    if means != {**held, key: dict(entry)}:
        raise UserError(f"{file}: an entry can't be put at its end: write it by hand")
    return new


@contextmanager
def tried(target: Target, text: str) -> Iterator[dict[str, str]]:
    """The folders of the configuration with a copy of the zoos in which the file has this text."""
    with tempfile.TemporaryDirectory(prefix="stamp-zoo-") as folder:
        for file in Path(target.folders["zoo"]).glob("*.yaml"):
            shutil.copy2(file, folder)
        (Path(folder) / target.file.name).write_text(text)
        try:
            yield {**target.folders, "zoo": folder}
        except UserError as mistake:
            line = str(mistake).replace(folder, str(target.file.parent))
            raise UserError(line) from None


# --- the check -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Check:
    """What a forward pass showed, in words, and which commit of the hub the weights are."""

    words: list[str]
    revision: str | None = None


def check(plan: config.Plan, study: str, key: str) -> Check:
    """One forward pass of a model on some images of the study's source, or on random pixels."""
    model = plan.studies[study].models[key]
    if model.precomputed:
        return Check(_check_given(plan, study, model))
    import torch

    from stamp.inference.logits import Forward, check_outputs, load_model

    classes = plan.studies[study].classes
    loaded = load_model(model.load, classes, None)
    batch, what = _sample(plan, study, model)
    outputs = Forward(loaded, "cpu")(torch.from_numpy(batch))
    check_outputs(outputs, len(classes), key, loaded.missing)
    found = np.delete(outputs, list(loaded.missing), axis=1)
    words = [f"one forward pass on {what}: {described(outputs.shape, found)}"]
    if loaded.missing:
        words.append(f"no output for {', '.join(classes[one] for one in loaded.missing)}")
    words += notes(found, model.load.get("probabilities"), plan.studies[study].task)
    return Check(words, loaded.origin.get("revision"))


def described(shape: Sequence[int], found: np.ndarray) -> str:
    """Shape and range of outputs that are finite."""
    return f"outputs {list(shape)}, all finite, from {found.min():.3g} to {found.max():.3g}"


def notes(found: np.ndarray, told: str | None, task: str) -> list[str]:
    """What looks wrong about outputs that are finite."""
    from stamp.config.precomputed import PROBABILITIES
    from stamp.models.probabilities import looks_like

    words = []
    if told is None and looks_like(found, PROBABILITIES[task]):
        words.append(
            "note: the outputs look like probabilities; if the model ends in a softmax or sigmoid, "
            "give --probabilities"
        )
    if len(found) > 1 and np.ptp(found, axis=0).max() < 1e-6:
        words.append("note: the outputs are the same for every image")
    return words


def unknown_splits(plan: config.Plan, study: str, key: str) -> list[str]:
    """A note where a model ``trained_on`` a split that is not the source's: it would have no effect.

    Before the index is made, only what looks like a misspelt split of the study is noted.
    """
    parts = plan.studies[study]
    known = {parts.calibration["split"], *parts.pairs["split"]}
    known |= {parts.source[part] for part in ("train", "val") if part in parts.source}
    known |= {parts.id["split"]} if parts.id else set()
    index = Path(plan.results) / "datasets" / parts.source["dataset"] / "index.parquet"
    if index.is_file():
        import polars as pl

        known |= set(pl.read_parquet(index, columns=["split"])["split"].drop_nulls())
    hints = {one: suggest(one, known) for one in parts.models[key].trained_on if one not in known}
    return [
        f"note: trained_on: the source has no split '{one}': {hint}"
        for one, hint in hints.items()
        if index.is_file() or hint.startswith("did you mean")
    ]


def _sample(plan: config.Plan, study: str, model: config.Model) -> tuple[np.ndarray, str]:
    """uint8 pixels [n, h, w, c] and what they are: images where they are on disk, else random."""
    from stamp.images.pixels import decode

    settings = model.preprocessing
    paths = list(_paths(plan, study))
    if paths:
        border = plan.datasets[plan.studies[study].source["dataset"]].border
        images = np.stack([decode(path, settings, border) for path in paths])
        return images, f"{len(paths)} images of the source"
    shape = (IMAGES, settings.size, settings.size, settings.channels)
    random = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    return random, f"{IMAGES} images of random pixels (the source's are not there yet)"


def _paths(plan: config.Plan, study: str) -> Iterator[str]:
    """The first images of the source that are on disk, if its index has been made."""
    import polars as pl

    from stamp.data.views import select

    source = plan.studies[study].source_images
    index = Path(plan.results) / "datasets" / source["datasets"][0] / "index.parquet"
    if not index.is_file():
        return
    rows = select(pl.read_parquet(index), {"domains": source["domains"]}, f"study '{study}'")
    for path in rows["path"][:IMAGES]:
        if Path(path).is_file():
            yield path


def _check_given(plan: config.Plan, study: str, model: config.Model) -> list[str]:
    """Whether a file has outputs of the study's images, as far as these are known yet."""
    import polars as pl

    from stamp.config.precomputed import file_of
    from stamp.models.class_matching import choose, lacking
    from stamp.models.loaders.precomputed import as_logits, logits_of, read

    parts = plan.studies[study]
    words = []
    for view in ("source", *(["id"] if parts.id else []), *parts.targets):
        table = Path(plan.results) / study / "views" / f"{view}.parquet"
        if table.is_file():
            ids = pl.read_parquet(table, columns=["image"])["image"].to_list()
            found = logits_of(model.load, view, ids, parts.classes, parts.task)
            present = found[:, ~np.isnan(found).all(axis=0)]
            words.append(f"view '{view}': {described(found.shape, present)}")
        else:
            path = file_of(model.load, view)
            read_in = read(path, model.load.get("outputs", parts.classes), parts.classes)
            missing = lacking(choose(read_in.names, parts.classes, f"{path}: outputs"))
            as_logits(read_in.values, model.load, parts.task, path, missing)
            words.append(
                f"{path} has outputs {list(read_in.values.shape)}; which of them view '{view}' "
                "needs is not known yet"
            )
    return words


# --- what will be computed -----------------------------------------------------------------------


def planned(jobs: Sequence[Job], study: str, key: str) -> list[str]:
    """A dry run in a few lines: this model's jobs, those of all models together, and the rest."""
    ours = [job for job in jobs if job.wildcards.get("study") in (study, None)]
    own = [job for job in ours if job.wildcards.get("model") == key]
    together = [job for job in ours if "model" not in job.wildcards]
    others = [job for job in ours if job.wildcards.get("model") not in (key, None)]
    lines = [f"{key}: {counted(by_stage(own)) or 'nothing'}"]
    if together:
        lines.append(f"for all models: {counted(by_stage(together))}")
    if others:
        models = sorted({job.wildcards["model"] for job in others})
        named = ", ".join(models) if len(models) < 4 else f"{len(models)} other models"
        lines.append(f"due too, whatever is added: {len(others)} jobs of {named}")
    return lines


@dataclass(frozen=True, slots=True)
class Addition:
    """A new entry with all that was found out about it; ``text`` is the zoo file's."""

    entry: str
    text: str
    checked: list[str]
    planned: list[str]


def add(target: Target, key: str, entry: Mapping[str, Any]) -> Addition:
    """Check an entry by schema, forward pass and dry run; the zoo file is not touched."""
    entry = {**entry, "load": dict(entry["load"])}
    text = appended(target.file, key, entry)
    with tried(target, text) as folders:
        plan = config.read_plan([target.study], folders=folders)
        if key not in plan.studies[target.study].models:
            raise UserError(
                f"{target.folders['studies']}/{target.study}.yaml: models: the study takes only "
                f"those that it lists: add '{key}' to them first"
            )
        try:
            found = check(plan, target.study, key)
        except UserError as mistake:
            own = str(mistake).removeprefix(f"model '{key}': ")
            raise UserError(f"model '{key}': {own}") from None
        noted = [*found.words, *unknown_splits(plan, target.study, key)]
    if found.revision and "revision" not in entry["load"]:
        entry["load"]["revision"] = found.revision
        text = appended(target.file, key, entry)
    with tried(target, text) as folders:
        where = ", ".join(f"{name}: {path}" for name, path in folders.items())
        jobs = dry_run(config=[f"studies=[{target.study}]", f"folders={{{where}}}"])
    return Addition(as_text(key, entry), text, noted, planned(jobs, target.study, key))


def write(target: Target, addition: Addition) -> None:
    """Put the entry at the end of the zoo file."""
    with atomic_write(target.file) as part:
        part.write_text(addition.text)
