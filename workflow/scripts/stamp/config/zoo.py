"""The models of a zoo file: what each is, and the files on disk that it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, RootModel

from stamp.config.contents.onnx_data import external_files
from stamp.config.contents.user_code import digest, source_files
from stamp.config.documents import Name, Section, Sentence, parsed, plain, read_yaml
from stamp.config.load_blocks import LoadBlock
from stamp.config.precomputed import PROBABILITIES, file_of, ids_file
from stamp.config.preprocessing import Preprocessing, merged
from stamp.config.registries import model_sources
from stamp.core.errors import UserError

FROM_SCRATCH = "none"  # the pretraining of a model that the workflow trains from random weights
MODEL_KEY = "^[A-Za-z0-9][A-Za-z0-9._-]*$"


class ZooEntry(Section):
    """One model of a zoo."""

    load: LoadBlock = Field(description="all that decides the model's numbers; see below")
    label: Name = Field(description="what tables and figures call it")
    family: Name = Field(description="its family of architectures")
    superfamily: Annotated[Name, Field(min_length=1)] | None = Field(
        None,
        description="a coarser group of families, such as `CNN`: `identifiability` looks within it "
        "too",
    )
    objective: Name = Field(description="what it was trained for")
    regime: Name = Field(description="how it was trained")
    backbone: Annotated[Name, Field(min_length=1)] | None = Field(
        None,
        description="the architecture alone, such as `ViT-B/16`: models that share it are compared "
        "with each other. Not `load.backbone`, which says what is loaded",
    )
    pretraining: Annotated[Name, Field(min_length=1)] | None = Field(
        None,
        description="what it was pretrained on: `none`, `in1k`, `in21k`, `lvd142m`, `wit400m`, "
        "`sa1b`, `cxr`, or other words. Models of different pretraining data are also shown apart "
        "(analysis `pretraining`), and a table that compares them says so",
        json_schema_extra={"absent": "`none` for models of the source `train`, else not said"},
    )
    trained_on: list[Name] | None = Field(
        None,
        description="splits of the source that the model was trained on: a score from pairs of one "
        "of them gets the flag `leakage`. `[]` says that it saw none of them; without this key it "
        "is not known, which is a flag too",
    )
    contamination: list[Name] | None = Field(
        None,
        description="other data sets that the model was trained or selected on: correlations are "
        "then also given without the models that met the target (`uncontaminated`)",
    )
    reference: Annotated[Sentence, Field(min_length=1)] | None = Field(
        None,
        description="why the model is shown for reference only: it is scored, and listed as "
        "excluded with this reason",
    )
    optional: Annotated[Sentence, Field(min_length=1)] | None = Field(
        None,
        description="why the model is left out unless the study says `optional_models: true` or "
        "names it in `models`: it is listed with this reason and not run",
    )
    unavailable: Sentence | None = Field(
        None, description="why the model can't be scored: it is listed with this reason and not run"
    )


class ZooFile(RootModel[dict[Annotated[str, Field(pattern=MODEL_KEY)], ZooEntry]]):
    """config/zoo/<name>.yaml: models by key."""


class LoadFile(RootModel[LoadBlock]):
    """A ``load`` block alone."""


@dataclass(frozen=True, slots=True)
class Model:
    """One model of a study: ``load`` is all that a job of one model may know of it."""

    key: str
    load: dict[str, Any]
    label: str
    family: str
    objective: str
    regime: str
    trained_on: tuple[str, ...] | None  # splits of the source; None where nobody said
    contamination: tuple[str, ...]
    preprocessing: Preprocessing
    backbone: str = ""
    superfamily: str = ""
    reference: str = ""
    pretraining: str = ""

    @property
    def trainer(self) -> str | None:
        """The rule that trains this model; none for published weights."""
        return None if "checkpoint" in self.load else self._source.trainer

    @property
    def module(self) -> str:
        """The library module that loads this kind of model."""
        return self._source.module

    @property
    def precomputed(self) -> bool:
        """Whether the model is a file of logits: nothing is run."""
        return self._source.precomputed

    @property
    def _source(self) -> model_sources.Source:
        return model_sources.SOURCES[self.load["source"]]

    @property
    def described(self) -> dict[str, str]:
        """What figures and tables say of the model; nothing that a number depends on."""
        parts = ("label", "family", "objective", "regime")
        more = ("backbone", "superfamily", "pretraining")
        given = [part for part in more if getattr(self, part)]
        return {part: getattr(self, part) for part in (*parts, *given)}

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the packages that decide its numbers."""
        return model_sources.versions(self.load["source"], self.load)

    @property
    def head(self) -> dict[str, Any]:
        """How the linear head of a probe is fitted."""
        return {key: self.load[key] for key in ("penalty", "standardise") if key in self.load}

    @property
    def backbone_key(self) -> str:
        """The name of a probe's backbone, which probes that differ in their heads only share."""
        return model_sources.backbone_key(self.load)

    @property
    def uncropped(self) -> dict[str, Any]:
        """The preprocessing of streamed images, which have the models' scale: never cropped."""
        return self.streamed_preprocessing.settings

    @property
    def streamed_preprocessing(self) -> Preprocessing:
        """That preprocessing as a record, with a key that models share."""
        return replace(self.preprocessing, crop=None)

    @property
    def streams_with_others(self) -> bool:
        """Whether one job may run it over a streamed target together with others."""
        return not self.precomputed and self.trainer is None

    @property
    def backbone_load(self) -> dict[str, Any]:
        """What decides the embeddings of a probe's backbone."""
        return {key: self.load[key] for key in ("backbone", "preprocessing")}

    @property
    def logits_script(self) -> str:
        """The script that writes its logits: it runs the model, or reads precomputed ones."""
        return "precomputed_logits.py" if self.precomputed else "logits.py"

    @property
    def predictions_script(self) -> str:
        """The script that writes its predictions on a streamed target."""
        return "precomputed_predictions.py" if self.precomputed else "predictions.py"

    @property
    def weights(self) -> str | None:
        """The user's weights file; none where the workflow trains them or the hub has them."""
        files = weight_files(self.load)
        return files.get("file") or files.get("checkpoint.file")

    @property
    def further_weights(self) -> list[str]:
        """What it needs beside its weights: the frozen backbone's, or an ONNX file's data."""
        onnx = self.load["source"] == "onnx"
        return [*self.backbone_weights, *(external_files(self.load["file"]) if onnx else ())]

    @property
    def initial_weights(self) -> list[str]:
        """The user's file that fine-tuning starts from."""
        file = weight_files(self.load).get("initial.file")
        return [file] if file else []

    @property
    def backbone_weights(self) -> list[str]:
        """The user's file with the weights of a probe's frozen backbone."""
        file = weight_files(self.load).get("backbone.file")
        return [file] if file else []

    def logits_files(self, view: str) -> list[str]:
        """The user's file of logits of a view, and that of its image ids where they are apart."""
        path = file_of(self.load, view)
        return [str(file) for file in (path, ids_file(path)) if file is not None]


def read_zoo(file: Path) -> dict[str, dict[str, Any]]:
    """The entries of one zoo file, checked, as they are written."""
    entries = read_yaml(file, "zoo") or {}
    parsed(ZooFile, entries, str(file))
    for key, entry in entries.items():
        for place, weights in weight_files(entry["load"]).items():
            if not Path(weights).is_file():
                raise UserError(f"{file}: {key}.load.{place}: no such file '{weights}'")
    return entries


def check_load(block: Mapping[str, Any], where: str) -> None:
    """Refuse a ``load`` block that its source does not take."""
    parsed(LoadFile, dict(block), where)


def weight_files(block: Mapping[str, Any]) -> dict[str, str]:
    """The local weights files that a ``load`` block names, by their keys."""
    found = {"file": block.get("file")}
    for part in ("checkpoint", "initial", "backbone"):
        settings = block.get(part)
        if isinstance(settings, dict):  # of a model trained from scratch, `backbone` is a word
            found[f"{part}.file"] = settings.get("file")
    for view, file in block.get("files", {}).items():
        found[f"files.{view}"] = file
    if block.get("source") == "logits":
        for key, file in list(found.items()):
            if file is not None and (beside := ids_file(Path(file))):
                found[f"{key} (its image ids)"] = str(beside)
    if block.get("source") == "onnx":
        for file in external_files(block["file"]):
            found[f"file (its data, {Path(file).name})"] = file
    return {key: file for key, file in found.items() if file is not None}


def filled(load: Mapping[str, Any], task: str, allow_code: bool, where: str) -> dict[str, Any]:
    """A ``load`` block with what only the study or the disk knows.

    That is the kind of probabilities that a task has, and the digest of a user's code, which is not
    imported, and refused if it is not allowed.
    """
    load = dict(load)
    if load.get("probabilities"):
        load["probabilities"] = PROBABILITIES[task]
    if load["source"] == "python":
        if not allow_code:
            raise UserError(f"{where}: code is run only with `allow_code: true` in config.yaml")
        load["code"] = digest(source_files(load["function"].partition(":")[0], where))
    return load


def model_of(key: str, entry: Mapping[str, Any], load: Mapping[str, Any], pixels: Any) -> Model:
    """The model of a zoo's entry; its own preprocessing overrides ``pixels``, the study's."""
    preprocessing = merged(pixels, load.get("preprocessing", {}))
    told = entry.get("trained_on")
    return Model(
        key=key,
        load=plain({**load, "preprocessing": preprocessing.settings}),
        label=entry["label"],
        family=entry["family"],
        objective=entry["objective"],
        regime=entry["regime"],
        trained_on=None if told is None else tuple(told),
        contamination=tuple(entry.get("contamination", ())),
        preprocessing=preprocessing,
        backbone=entry.get("backbone", ""),
        superfamily=entry.get("superfamily", ""),
        reference=entry.get("reference", ""),
        pretraining=entry.get("pretraining", FROM_SCRATCH if load["source"] == "train" else ""),
    )
