"""Several models in one argument: a folder of files, a list of names, outputs of many models."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl

from stamp.core.errors import UserError
from stamp.models.loaders.precomputed import ENDINGS, IMAGE

FILES = {
    "onnx": (".onnx",),
    "torchscript": (".pt", ".pth", ".ts", ".torchscript"),
    "checkpoint": (".safetensors", ".pt", ".pth", ".bin", ".ckpt"),
    "logits": ENDINGS,
}
MODEL = "model"
IDS = ("image", "images", "ids")  # names of the array with the images' ids in an npz


def key_of(value: str) -> str:
    """A model's key from a file's or a hub's name: what a zoo can't have becomes a hyphen."""
    path = Path(value.partition("@")[0].removeprefix("hf:"))
    known = {ending for endings in FILES.values() for ending in endings}
    stem = path.stem if path.suffix.lower() in known else path.name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._") or "model"


def named_models(values: Sequence[str]) -> dict[str, str]:
    """Each value by its key."""
    found: dict[str, str] = {}
    for value in values:
        key = key_of(value)
        if key in found:
            raise UserError(f"'{found[key]}' and '{value}' would both be model '{key}': rename one")
        found[key] = value
    return found


@contextmanager
def separated(kind: str, value: str | Sequence[str], only_tried: bool) -> Iterator[list[str]]:
    """The single models that an argument names.

    Outputs of many models in one file are written to a folder beside it, one file per model, which
    goes away if what is done with them fails or is ``only_tried``.
    """
    if kind in ("timm", "hf"):
        yield _tags([str(one) for one in value])
        return
    path = Path(str(value))
    if kind in FILES and path.is_dir():
        yield _files(kind, path)
        return
    tables = _outputs(path) if kind == "logits" else None
    if tables is None:
        yield [str(value)]
        return
    folder = path.with_name(f"{path.stem}-models")
    if folder.exists():
        raise UserError(
            f"{folder}: is there already, and would get the outputs of {path.name}, one file per "
            "model: rename it"
        )
    folder.mkdir()
    kept = False
    try:
        yield [_write(folder, key, table) for key, table in tables.items()]
        kept = not only_tried
    finally:
        if not kept:
            shutil.rmtree(folder)


def _tags(values: Sequence[str]) -> list[str]:
    """Names as given; a file has one per line, and comments after #."""
    found: list[str] = []
    for value in values:
        if not Path(value).is_file():
            found.append(value)
            continue
        lines = Path(value).read_text().splitlines()
        names = [line.partition("#")[0].strip() for line in lines]
        found += [name for name in names if name]
    if not found:
        raise UserError(f"{values[0]}: no name in it: one per line is expected")
    return found


def _files(kind: str, folder: Path) -> list[str]:
    found = sorted(one for one in folder.iterdir() if one.suffix.lower() in FILES[kind])
    if not found:
        raise UserError(f"{folder}: no file that ends in {', '.join(FILES[kind])}")
    return [str(one) for one in found]


def _outputs(path: Path) -> dict[str, pl.DataFrame | tuple[np.ndarray, list[str]]] | None:
    """The outputs of each model in a file of many; None where the file is of one."""
    if path.suffix == ".npz":
        return _arrays(path)
    if path.suffix not in (".parquet", ".csv") or not path.is_file():
        return None
    scan = pl.scan_csv if path.suffix == ".csv" else pl.scan_parquet
    try:
        lazy = scan(path)
        if not {MODEL, IMAGE} <= set(lazy.collect_schema().names()):
            return None
        rows = lazy.with_columns(pl.col(MODEL, IMAGE).cast(pl.String)).collect()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise UserError(f"{path}: can't be read: {str(error).splitlines()[0]}") from None
    if (empty := rows[MODEL].null_count()) > 0:
        raise UserError(f"{path}: the column '{MODEL}' is empty in {empty} rows")
    parts = rows.partition_by(MODEL, as_dict=True, include_key=False, maintain_order=True)
    named = named_models([str(key[0]) for key in parts])
    return {key: parts[(name,)] for key, name in named.items()}


def _arrays(path: Path) -> dict[str, pl.DataFrame | tuple[np.ndarray, list[str]]]:
    """The arrays [images, classes] of an npz; one called `image` has the images' ids."""
    try:
        with np.load(path, allow_pickle=False) as opened:
            arrays = {name: opened[name] for name in opened.files}
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path}: can't be read: {error}") from None
    name = next((one for one in IDS if one in arrays), None)
    if name is None:
        raise UserError(f"{path}: no array 'image' with the images' ids, one per row")
    ids = [str(one) for one in arrays.pop(name).ravel()]
    for key, values in arrays.items():
        if values.ndim != 2 or len(values) != len(ids):
            raise UserError(
                f"{path}: '{key}' has shape {list(values.shape)}, but [{len(ids)}, classes] is "
                f"expected, since '{name}' has {len(ids)} ids"
            )
    if not arrays:
        raise UserError(f"{path}: no array of outputs beside '{name}'")
    return {key: (arrays[one], ids) for key, one in named_models(list(arrays)).items()}


def _write(folder: Path, key: str, outputs: pl.DataFrame | tuple[np.ndarray, list[str]]) -> str:
    """One model's outputs as a file of their own."""
    if isinstance(outputs, pl.DataFrame):
        file = folder / f"{key}.parquet"
        outputs.write_parquet(file)
        return str(file)
    values, ids = outputs
    file = folder / f"{key}.npy"
    np.save(file, values)
    file.with_suffix(".txt").write_text("".join(f"{one}\n" for one in ids))
    return str(file)
