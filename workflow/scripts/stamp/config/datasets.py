"""The data sets' file: where images come from, and where they are on this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, RootModel

from stamp.config.contents import fingerprints
from stamp.config.documents import Name, Section, Sentence, parsed, plain, read_yaml
from stamp.config.labels import label_maps
from stamp.config.load_blocks import Address, Checksum
from stamp.core.errors import UserError, suggest

ADAPTERS = Path(__file__).resolve().parents[1] / "data" / "adapters"
MADE = ("generated", "bundled")


class RemoteFile(Section):
    """A file that is downloaded into the folder of a data set."""

    url: Address = Field(description="its address")
    name: str = Field(description="its name in the folder")
    sha256: Checksum | None = Field(None, description="its SHA-256 checksum")
    md5: Annotated[str, Field(pattern="^[0-9a-f]{32}$")] | None = Field(
        None, description="its MD5 checksum"
    )
    size: Annotated[int, Field(ge=0)] | None = Field(None, description="its size in bytes")
    unpack: bool | None = Field(
        None, description="an archive whose members go into the folder; it is then removed"
    )
    password: str | None = Field(None, description="of a zip whose password is public")


class DatasetEntry(Section):
    """One data set."""

    adapter: str = Field(
        description="module in `workflow/scripts/stamp/data/adapters/` that makes or finds the "
        "images and returns the index"
    )
    title: Sentence = Field(description="what it is")
    licence: Sentence = Field(description="its licence")
    citation: Sentence = Field(description="whom to cite")
    access: Literal["generated", "bundled", "open", "kaggle", "physionet", "form"] = Field(
        description="`generated` (from code), `bundled` (inside an installed package), `open` "
        "(downloaded), `kaggle` and `physionet` (downloaded with your credentials, once "
        "`download: true` says that you accepted the terms) or `form` (put into its folder by hand)"
    )
    notice: Sentence = Field("", description="a sentence that figures made from it carry")
    options: dict[str, Any] = Field(
        {},
        description="options of the adapter; `{nih}` stands for the folder of the data set `nih`",
    )
    root: str | None = Field(
        None,
        description="its folder, or `{vindr}` for that of the data set `vindr`; when absent, the "
        "environment variable `STAMP_<NAME>_ROOT`, or `<data>/<name>`",
    )
    download: bool | None = Field(
        None,
        description="whether files are downloaded. Open data sets are unless it is `false`; others "
        "only if it is `true`",
    )
    files: list[RemoteFile] = Field([], description="what is downloaded; see below")
    images_url: Address | None = Field(
        None,
        description="address under which single images lie by their path in the folder: those of "
        "the index that are missing are fetched",
    )
    images: dict[str, Annotated[int, Field(ge=0)]] = Field(
        {},
        description="how many images were published, by split: `python -m stamp cost` counts with "
        "them until there is an index",
    )
    gigabytes: Annotated[float, Field(ge=0)] | None = Field(
        None, description="roughly how much is downloaded, or put into its folder by hand"
    )
    border: Annotated[int, Field(ge=0)] = Field(
        0, description="pixels that are cut off at each side of every image before anything else"
    )
    relabels: str | None = Field(
        None, description="the data set whose images these are under other labels"
    )


class DatasetsFile(RootModel[dict[Name, DatasetEntry]]):
    """config/datasets.yaml: where each data set comes from."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """One data set, with its folder on this machine."""

    key: str
    adapter: str
    access: str
    notice: str
    options: dict[str, Any]
    root: str
    files: dict[str, dict[str, Any]]
    images_url: str | None
    download: bool
    tables_downloaded: bool  # its own files, or those of the data set that it relabels
    border: int
    relabels: str | None
    images: dict[str, int] = field(default_factory=dict)  # as published, by split
    gigabytes: float | None = None  # roughly

    @property
    def made(self) -> bool:
        """Whether a rule makes the images, from code or from a package."""
        return self.access in MADE

    @property
    def module(self) -> str:
        """The library module of its adapter."""
        return f"stamp.data.adapters.{self.adapter}"

    @property
    def fetched_from(self) -> str | None:
        """The address that missing images are fetched from; none where they may not be."""
        return self.images_url if self.download else None

    @property
    def label_map(self) -> str | None:
        """A digest of the shipped map from its labels to classes, if there is one."""
        return label_maps.digest(self.adapter)

    @property
    def edited_table(self) -> str | None:
        """A digest of the tables that the user put there; None where there is none of them."""
        if self.made or self.tables_downloaded:
            return None
        return fingerprints.of_index(self.adapter, self.options, self.root)

    @property
    def owned(self) -> bool:
        """Whether its images are the user's own, who may replace them."""
        return self.adapter in fingerprints.OWN

    @property
    def own_tables(self) -> list[str]:
        """The user's own files that the index is made of; none of other data sets."""
        return fingerprints.own_tables(self.adapter, self.options, self.root)

    @property
    def own_folders(self) -> list[str]:
        """The folder of the user's own images; none of other data sets."""
        return fingerprints.own_folders(self.adapter, self.options, self.root)

    def edited_images(self, record: Path) -> str | None:
        """What stands for the content of the user's own images; None where nobody edits them."""
        return fingerprints.of_images(self.adapter, self.options, self.root, record)


def check_known(key: str, datasets: Mapping[str, Any], where: str) -> None:
    """Refuse the key of a data set that there is none of."""
    if key not in datasets:
        raise UserError(f"{where}: unknown data set '{key}': {suggest(key, datasets)}")


def read_datasets(file: Path, data: str = "data") -> dict[str, Dataset]:
    """The data sets' file, checked; ``data`` is the folder that holds their folders."""
    document = read_yaml(file, "data sets' file") or {}
    entries = parsed(DatasetsFile, document, str(file)).root
    adapters = [path.stem for path in ADAPTERS.glob("*.py") if path.stem != "__init__"]
    for key, entry in entries.items():
        if entry.adapter not in adapters:
            known = suggest(entry.adapter, adapters)
            raise UserError(f"{file}: {key}: unknown adapter '{entry.adapter}': {known}")
        if entry.relabels:
            check_known(entry.relabels, entries, f"{file}: {key}: relabels")
    roots = _roots(entries, data, str(file))
    return {
        key: Dataset(
            key=key,
            adapter=entry.adapter,
            access=entry.access,
            notice=entry.notice,
            options=plain(_options(entry.options, roots)),
            root=roots[key],
            files=_files(entry, f"{file}: {key}"),
            images_url=entry.images_url,
            download=_downloads(entry),
            tables_downloaded=any(
                _downloads(one) and bool(one.files)
                for one in (entry, *([entries[entry.relabels]] if entry.relabels else []))
            ),
            border=entry.border,
            relabels=entry.relabels,
            images=entry.images,
            gigabytes=entry.gigabytes,
        )
        for key, entry in entries.items()
    }


def _downloads(entry: DatasetEntry) -> bool:
    """Whether files of a data set are downloaded."""
    return entry.access == "open" if entry.download is None else entry.download


def _roots(entries: Mapping[str, DatasetEntry], data: str, where: str) -> dict[str, str]:
    """The folder of each data set; ``{name}`` is that of another one."""
    own = {key: _root(key, entry, data) for key, entry in entries.items()}
    found = {}
    for key, root in own.items():
        other = root[1:-1] if root.startswith("{") and root.endswith("}") else None
        if other is not None:
            check_known(other, entries, f"{where}: {key}: root")
            if own[other].startswith("{"):
                raise UserError(f"{where}: {key}: root: '{other}' has no folder of its own")
        found[key] = root if other is None else own[other]
    return found


def _root(key: str, entry: DatasetEntry, data: str) -> str:
    """The folder of a data set: its entry's, the environment's, or its own under ``data``."""
    variable = f"STAMP_{re.sub('[^A-Z0-9]', '_', key.upper())}_ROOT"
    return entry.root or os.environ.get(variable) or f"{data}/{key}"


def _options(options: Mapping[str, Any], roots: Mapping[str, str]) -> dict[str, Any]:
    """Options in which ``{name}`` stands for the folder of another data set."""
    return {
        key: roots.get(value[1:-1], value) if isinstance(value, str) and value[:1] == "{" else value
        for key, value in options.items()
    }


def _files(entry: DatasetEntry, where: str) -> dict[str, dict[str, Any]]:
    """What is downloaded for a data set, by name."""
    found: dict[str, dict[str, Any]] = {}
    for each in entry.files:
        if each.name in found:
            raise UserError(f"{where}: files: '{each.name}' stands twice")
        if not re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)*", each.name):
            raise UserError(f"{where}: files: '{each.name}' is no plain file name")
        found[each.name] = plain(each.model_dump(exclude_unset=True))
    return found
