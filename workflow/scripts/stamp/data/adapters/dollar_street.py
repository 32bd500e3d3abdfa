"""Dollar Street: 38,479 photographs of things in homes of all incomes, in 63 countries.

The release of MLCommons has a table of all images, and two of the images whose topic corresponds to
classes of ImageNet, as a training and a test part (4,308 images). These give for every image a list
of ImageNet class numbers, and a prediction is right if it is any of them. Some of the images have
four channels, some are PNG files that are named otherwise.
Gaviria Rojas et al., "The Dollar Street dataset: images representing the geographic and
socioeconomic diversity of the world", NeurIPS 2022 Datasets and Benchmarks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stamp.config.labels.imagenet_classes import classes
from stamp.core.errors import UserError
from stamp.data.adapter_options import choice, choose, switch
from stamp.data.label_tables import read

HELP = (
    "Dollar Street is on Kaggle: after signing in, download "
    "kaggle.com/datasets/mlcommons/the-dollar-street-dataset (101 GB), as by kaggle datasets "
    "download mlcommons/the-dollar-street-dataset, and unpack it in the data set's folder, which "
    "gives dataset_dollarstreet/assets and dataset_dollarstreet/images_v2_imagenet_test.csv"
)
OPTIONS: dict[str, Any] = {
    "table": "test",
    "strata": "quartiles",
    "domain": "income",
    "only_labeled": True,
}
FOLDER = "dataset_dollarstreet"
TABLES = {
    "test": "images_v2_imagenet_test.csv",
    "train": "images_v2_imagenet_train.csv",
    "all": "images_v2.csv",
}
NUMBERS = "imagenet_sysnet_id"
NEEDED = ("id", "country.name", "region.id", "imageRelPath", "topics", "place", "income")
REGIONS = ("af", "am", "as", "eu")
QUANTILES = {"quartiles": (0.25, 0.5, 0.75), "median": (0.5,)}


def index(options: Mapping[str, Any], root: Path, seed: int) -> pl.DataFrame:
    """The index of the images of a table, by id.

    ``accepted`` is the table's list of class numbers, ``label`` its first and ``group`` the topics.
    ``table: all`` is the table of all images with the lists, and the ``split``, of the other two.
    Images without a class number are left out unless ``only_labeled: false``. ``domain: income``
    gives income-1 (the poorest) and so on by :func:`bounds`; ``domain: region`` gives region-af,
    region-am, region-as, region-eu. An image whose income or region is not known has a null domain.
    Extra columns: ``income`` (dollars a month), ``country``, ``region``, ``place``.
    """
    chosen = choose("dollar_street", options, OPTIONS)
    table = choice("dollar_street", "table", chosen["table"], tuple(TABLES))
    domain = choice("dollar_street", "domain", chosen["domain"], ("income", "region"))
    only = switch("dollar_street", "only_labeled", chosen["only_labeled"])
    strata = _strata(chosen["strata"])
    home = root / FOLDER if (root / FOLDER).is_dir() or not _tables_in(root) else root
    rows = _all(home) if table == "all" else _part(home, table)
    if domain == "income":
        income = rows["income"].to_numpy()
        rows = rows.with_columns(domain=_stratum(income, bounds(income, strata, home)))
    else:
        rows = rows.with_columns(domain="region-" + pl.col("region"))
    if only:
        rows = rows.filter(pl.col("accepted").is_not_null())
    return rows.select(
        "image",
        "path",
        "group",
        order=pl.lit(None, dtype=pl.Int32),
        domain="domain",
        split="split",
        label=pl.col("accepted").list.first(),
        accepted="accepted",
        **{name: pl.col(name) for name in ("income", "country", "region", "place")},
    ).sort("image")


def bounds(
    income: NDArray[np.float64], strata: str | list[float], where: Path
) -> NDArray[np.float64]:
    """The incomes that separate the strata: quartiles, the median, or those that are given.

    Quantiles are of all images of the chosen table whose income is known, labeled or not, with
    linear interpolation.
    """
    if not isinstance(strata, str):
        return np.array(strata, dtype=np.float64)
    known = income[~np.isnan(income)]
    if not len(known):
        raise UserError(f"{where}: no image has an income; set 'domain: region'")
    return np.quantile(known, QUANTILES[strata])


def _stratum(income: NDArray[np.float64], at: NDArray[np.float64]) -> pl.Series:
    """``income-1`` up to ``income-<k>``, null without an income; a bound is in the lower one."""
    names = pl.Series(np.searchsorted(at, income, side="left") + 1).cast(pl.String)
    return ("income-" + names).set(pl.Series(np.isnan(income)), None)


def _strata(wanted: Any) -> str | list[float]:
    """A known rule, or given bounds that rise."""
    if not isinstance(wanted, list | tuple):
        return choice("dollar_street", "strata", wanted, tuple(QUANTILES))
    numbers = [one for one in wanted if isinstance(one, int | float) and not isinstance(one, bool)]
    rising = all(low < high for low, high in pairwise(numbers))
    if not wanted or len(numbers) < len(wanted) or not rising or not np.isfinite(numbers).all():
        raise UserError(
            f"data set 'dollar_street': option 'strata' is {wanted!r}; expected quartiles, median "
            "or a list of rising incomes"
        )
    return [float(one) for one in numbers]


def tables(options: Mapping[str, Any], root: Path) -> list[Path]:
    """The files that the index is made of."""
    return [home / name for home in (root, root / FOLDER) for name in TABLES.values()]


def _tables_in(root: Path) -> bool:
    return any((root / name).is_file() for name in TABLES.values())


def _part(home: Path, table: str) -> pl.DataFrame:
    """The images of one of the two tables with class numbers."""
    file = home / TABLES[table]
    found = read(file, (*NEEDED, NUMBERS), HELP)
    return _typed(found, home, file).with_columns(
        accepted=numbers(found[NUMBERS], found["id"], file), split=pl.lit(table)
    )


def _all(home: Path) -> pl.DataFrame:
    """The images of the table of all, with the class numbers of the other two."""
    file = home / TABLES["all"]
    rows = _typed(read(file, NEEDED, HELP), home, file)
    labeled = pl.concat([_part(home, part) for part in ("train", "test")])
    lists = labeled.select("image", "accepted", "split")
    twice = lists.filter(pl.col("image").is_duplicated())
    if len(twice):
        raise UserError(f"{home}: image '{twice['image'][0]}' stands twice in the tables of parts")
    return rows.join(lists, on="image", how="left", maintain_order="left")


def _typed(table: pl.DataFrame, home: Path, file: Path) -> pl.DataFrame:
    """The columns of a table by our names, checked."""
    for name in ("id", "imageRelPath"):
        if table[name].null_count():
            raise UserError(f"{file}: a row has no {name}")
    income = pl.col("income").cast(pl.Float64, strict=False).fill_nan(None)
    missing = pl.col("income").is_null() | pl.col("income").str.to_lowercase().is_in(["nan"])
    wrong = table.filter(~missing & ~income.is_finite().fill_null(False))
    if len(wrong):
        raise UserError(f"{file}: the income of image '{wrong['id'][0]}' is '{wrong['income'][0]}'")
    strange = table.filter(~pl.col("region.id").is_in(REGIONS))
    if len(strange):
        raise UserError(
            f"{file}: the region.id of image '{strange['id'][0]}' is '{strange['region.id'][0]}'; "
            f"expected one of: {', '.join(REGIONS)}"
        )
    return table.select(
        image="id",
        path=pl.lit(str(home) + os.sep) + pl.col("imageRelPath"),
        group=_topics(),
        income=income,
        country="country.name",
        region="region.id",
        place="place",
    )


def _topics() -> pl.Expr:
    """The strings of a list literal, joined by commas; a text that is no list, as it is."""
    quoted = pl.col("topics").str.extract_all(r"""'[^']*'|"[^"]*\"""")
    joined = quoted.list.eval(pl.element().str.slice(1).str.head(-1)).list.join(", ")
    return pl.when(quoted.list.len() > 0).then(joined).otherwise(pl.col("topics"))


def numbers(texts: pl.Series, images: pl.Series, where: Path) -> pl.Series:
    """Lists of class numbers from their literals, ``[620, 681]``; null where there is none.

    The order stays, repeats go.
    """
    table = pl.DataFrame({"text": texts, "image": images})
    form = r"^\[\s*(\d+\s*(,\s*\d+\s*)*,?)?\s*\]$"
    found = table.with_columns(
        found=pl.col("text")
        .str.extract_all(r"\d+")
        .list.eval(pl.element().cast(pl.Int64, strict=False))
        .list.unique(maintain_order=True)
    )
    most = len(classes()) - 1
    beyond = pl.col("found").list.eval(~pl.element().is_between(0, most).fill_null(False))
    bad = ~pl.col("text").str.contains(form) | beyond.list.any()
    wrong = found.filter(pl.col("text").is_not_null() & bad)
    if len(wrong):
        raise UserError(
            f"{where}: {NUMBERS} of image '{wrong['image'][0]}' is '{wrong['text'][0]}'; "
            f"expected a list of class numbers from 0 to {most}, such as [620, 681]"
        )
    some = pl.col("found").list.len() > 0
    return found.select(pl.when(some).then(pl.col("found").cast(pl.List(pl.Int16)))).to_series()
