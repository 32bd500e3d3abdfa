"""Pair pools and label counts, from the metadata that torchxrayvision ships."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stamp.config.labels import label_maps as labelmaps
from stamp.data.adapters import nih, vindr
from stamp.data.label_tables import CLASSES, read, shipped
from stamp.data.pairs import consecutive, labeled
from stamp.paper.claims import NOTHING, Claim, Text, measured, stated, unchecked
from stamp.paper.printed_numbers import number
from stamp.paper.printed_tables import Paper

NOWHERE = Path("/nonexistent")
ABSENT = "torchxrayvision, which ships the table, is not installed"
VINDR_TEST = 3000
CHEXPERT = "chexpert_train.csv.gz"
ORDERS = {"image": "file name", "order": "follow-up number of 2020"}


def claims(paper: Paper, lists: Path | None = None) -> list[Claim]:
    """Every claim on data that metadata can check; ``lists`` is a folder with NIH's split lists."""
    return [
        *of_nih(paper, lists),
        *classes(paper),
        evaluable(paper),
        uncertain(paper),
        *silent(paper),
    ]


def of_nih(paper: Paper, lists: Path | None) -> list[Claim]:
    """Images, patients and pools of NIH ChestX-ray14."""
    keys = ("nih_images", "nih_patients", "pool_temporal", "pool_labeled", "gap", "label_noise")
    if shipped(f"{nih.TABLES[0]}.gz") is None:
        return [unchecked(paper.text(key), ABSENT) for key in (*keys, "leakage")]
    index = nih.index({"split": "patients"}, NOWHERE, seed=0)
    pairs = {order: consecutive(index, order=order) for order in ORDERS}
    matched = {order: labeled(found, index, CLASSES) for order, found in pairs.items()}
    patients = {order: found["group_a"].n_unique() for order, found in matched.items()}
    paired = pairs["order"]["group_a"].n_unique()
    one = Text(
        "The temporal pool as one pair per patient", "3.4", paper.text("pool_temporal").printed
    )
    first = Text(
        "The label-matched pool as one pair per patient, by file name",
        "3.4",
        paper.text("pool_labeled").printed,
    )
    return [
        measured(paper.text("nih_images"), float(index.height)),
        measured(paper.text("nih_patients"), float(index["group"].n_unique())),
        measured(
            paper.text("pool_temporal"), float(pairs["order"].height), "all consecutive pairs"
        ),
        measured(one, float(paired), "patients with at least two images"),
        measured(
            paper.text("pool_labeled"),
            float(matched["order"].height),
            "all consecutive pairs with equal findings, by follow-up number of 2020",
        ),
        measured(
            first,
            float(patients["image"]),
            f"by follow-up number of 2020 {patients['order']:,}; by file name "
            f"{100 * backwards(index, 'image'):.1f} % of the first pairs go back in age",
        ),
        gaps(paper, index),
        noise(paper, pairs, matched, index),
        leakage(paper, pairs["order"], lists),
    ]


def backwards(index: pl.DataFrame, order: str) -> float:
    """The share of first pairs whose second image shows a younger patient."""
    first = consecutive(index, "one_per_group", order)
    ages = index.select("image", "age")
    ends = first.join(ages, left_on="a", right_on="image").join(
        ages, left_on="b", right_on="image", suffix="_b"
    )
    return float((ends["age_b"] < ends["age"]).sum() / ends.height)


def steps(index: pl.DataFrame) -> dict[str, list[int]]:
    """The distinct differences between a patient's successive numbers, in both numberings."""
    named = index.with_columns(image_number=pl.col("image").str.extract(r"_(\d+)\.").cast(pl.Int32))
    return {column: _distinct(named, column) for column in ("order", "image_number")}


def _distinct(table: pl.DataFrame, column: str) -> list[int]:
    found = table.sort("group", column).select(step=pl.col(column).diff().over("group"))
    return found["step"].drop_nulls().unique().sort().to_list()


def gaps(paper: Paper, index: pl.DataFrame) -> Claim:
    """A gap of at most 1, 2, 3, 5 or 10 visits selects the same pairs where every gap is 1."""
    found = sorted({step for each in steps(index).values() for step in each})
    return stated(
        paper.text("gap"),
        f"gaps that occur: {', '.join(map(str, found))}",
        found == [1],
        "numbers are contiguous for every patient in both numberings, so that all five pools are "
        "one and the same: the result follows from the data, not from STAMP",
    )


def noise(
    paper: Paper,
    pairs: dict[str, pl.DataFrame],
    matched: dict[str, pl.DataFrame],
    index: pl.DataFrame,
) -> Claim:
    """The share of pairs whose labels change, by the paper's pools and in the data."""
    text = paper.text("label_noise")
    low, high = (float(part) for part in text.printed.strip("%").split("-"))
    pools = [number(paper.text(key).printed).value for key in ("pool_labeled", "pool_temporal")]
    own = 100 * (1 - pools[0] / pools[1])
    whole = 100 * (1 - matched["order"].height / pairs["order"].height)
    first = consecutive(index, "one_per_group", "image")
    one = 100 * (1 - labeled(first, index, CLASSES).height / first.height)
    return stated(
        text,
        f"{own:.1f}% by the paper's pools",
        all(low <= share <= high for share in (own, whole, one)),
        f"in the data {whole:.1f} % of all consecutive pairs and {one:.1f} % of the first pairs by "
        "file name; a change between two visits need not be noise",
    )


def leakage(paper: Paper, pairs: pl.DataFrame, lists: Path | None) -> Claim:
    """Paired patients in the official training list, where the user's folder has it."""
    text, file = paper.text("leakage"), lists / nih.LISTS["train_val"] if lists else None
    if file is None or not file.is_file():
        return unchecked(text, f"needs {nih.LISTS['train_val']} of NIH, which is not shipped")
    patients = {str(int(name[:8])) for name in file.read_text().split()}
    paired = pairs["group_a"].unique()
    inside = int(paired.is_in(sorted(patients)).sum())
    return unchecked(
        text,
        "the paper names no split; models trained on NIH saw these patients",
        f"{inside:,} of {paired.len():,}",
    )


def classes(paper: Paper) -> list[Claim]:
    """How many classes each target shares with NIH, by the shipped label maps."""
    found = []
    for key, name in (("vindr", "vindr"), ("chexpert", "chexpert"), ("mimic", "mimic_cxr")):
        labels = labelmaps.read(name)
        mapped = list(dict.fromkeys(labels.values()))
        note = ", ".join(mapped)
        if key == "mimic":
            other = [label for label, own in labels.items() if label != own]
            same = len(labels) - len(other)
            note += f"; {same} have the same name in both, all but {', '.join(other)}"
        found.append(measured(paper.text(f"classes_{key}"), float(len(mapped)), note))
    return found


def evaluable(paper: Paper) -> Claim:
    """VinDr-CXR images that are evaluable by the nearest rule that we know."""
    text = paper.text("vindr_images")
    if vindr.shipped() is None:
        return unchecked(text, ABSENT)
    votes = vindr.votes(vindr.readings(NOWHERE, "train", "kaggle"))
    names = [column for column in votes.columns if f"{column}:readers" in votes.columns]
    unanimous = votes.select(
        pl.any_horizontal(pl.col(name) == pl.col(f"{name}:readers") for name in names)
    )
    positive = int(unanimous.to_series().sum())
    return measured(
        text,
        float(VINDR_TEST + positive),
        f"no rule is printed; the nearest that we know: {VINDR_TEST:,} test images and the "
        f"{positive:,} of 15,000 training images in which all readers see one of the nine classes",
    )


def uncertain(paper: Paper) -> Claim:
    """Uncertain labels of CheXpert, which are in its training table."""
    text, file = paper.text("chexpert_uncertain"), shipped(CHEXPERT)
    if file is None:
        return unchecked(text, ABSENT)
    names = list(labelmaps.read("chexpert"))
    table = read(file, ["Frontal/Lateral", *names], "").filter(
        pl.col("Frontal/Lateral") == "Frontal"
    )
    marks = pl.col(names).cast(pl.Float64, strict=False) == -1
    images = int(table.select(pl.any_horizontal(marks)).to_series().sum())
    return unchecked(
        text,
        "the text sets uncertain labels to 0 and names no split; the validation and test tables "
        "are not shipped",
        f"{images:,} of {table.height:,} frontal training images have one",
    )


def silent(paper: Paper) -> list[Claim]:
    """What neither the paper nor shipped metadata say."""
    reasons = {
        "rsna_hospital": "its images are of NIH ChestX-ray14; the mapping is not shipped",
        "exposure": "training sets are not printed; torchxrayvision documents that its model 'all' "
        "was trained on CheXpert, MIMIC-CXR and RSNA",
        "temperature": "temperatures are not printed",
        "excluded": "their names are not printed; Figure 2 names ViT-Tiny, which is no SSL model",
        "zoo_natural": "named by family only",
        "dollar_street_images": "which images and which map of classes is not printed",
        "families": "their members are not printed",
        "recipe": "not printed",
        "auroc_rule": "not printed",
        "undefined": "not printed",
        "code": "not known here; the audit reads no network",
    }
    return [unchecked(paper.text(key), reason, NOTHING) for key, reason in reasons.items()]
