"""Pools and counts from shipped metadata, with and without NIH's lists."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from stamp.data.adapters import nih
from stamp.data.label_tables import shipped
from stamp.paper.claims import DIFFERS, NOT_CHECKABLE, REPRODUCED, Claim
from stamp.paper.printed_tables import read
from stamp.paper.themes import pools

PAPER = read()
TABLE = shipped("Data_Entry_2017_v2020.csv.gz")
real = pytest.mark.skipif(TABLE is None, reason="torchxrayvision is not installed")


@pytest.fixture(scope="module")
def claims() -> list[Claim]:
    return pools.claims(PAPER)


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """The shipped table as it is, read on its own."""
    names = {"Image Index": "image", "Finding Labels": "findings", "Patient ID": "patient"}
    return pl.read_csv(TABLE, infer_schema=False).select(pl.col(list(names))).rename(names)


def of(claims: list[Claim], start: str) -> Claim:
    return next(each for each in claims if each.claim.startswith(start))


@real
def test_the_pools_are_those_that_a_loop_over_patients_counts(claims, rows):
    pairs, paired, equal = 0, 0, 0
    ordered = rows.sort("patient", "image")
    for _, part in ordered.group_by("patient", maintain_order=True):
        found = part["findings"].to_list()
        pairs += len(found) - 1
        paired += len(found) > 1
        equal += any(a == b for a, b in pairwise(found))
    assert of(claims, "Pairs of consecutive").recomputed == f"{pairs:,}"
    assert of(claims, "The temporal pool as one pair").recomputed == f"{paired:,}"
    assert of(claims, "The label-matched pool as one").recomputed == f"{equal:,}"
    assert of(claims, "Pairs of consecutive").verdict == DIFFERS
    assert of(claims, "The temporal pool as one pair").verdict == REPRODUCED
    assert of(claims, "The label-matched pool as one").verdict == REPRODUCED


@real
def test_every_gap_is_one_visit(claims):
    claim = of(claims, "STAMP for pools with gaps")
    assert claim.recomputed == "gaps that occur: 1"


@real
def test_labels_change_more_often_than_the_text_says(claims):
    claim = of(claims, "Share of label-changed")
    assert claim.verdict == DIFFERS
    assert claim.recomputed.startswith(f"{100 * (1 - 9927 / 13302):.1f}%")


@real
def test_training_patients_are_counted_where_the_users_folder_has_the_list(claims, tmp_path):
    assert of(claims, "Paired patients").recomputed == "-"
    # patient 1 has several images, patient 5 several, patient 4 one
    names = ["00000001_000.png", "00000005_000.png", "00000005_001.png", "00000004_000.png"]
    (tmp_path / nih.LISTS["train_val"]).write_text("\n".join(names))
    found = of(pools.claims(PAPER, tmp_path), "Paired patients")
    assert found.recomputed == "2 of 13,302"
    assert found.verdict == NOT_CHECKABLE, "nothing is printed that it could be compared with"


def test_without_the_shipped_table_nothing_is_guessed(monkeypatch):
    monkeypatch.setattr(pools, "shipped", lambda name: None)
    monkeypatch.setattr(pools.vindr, "shipped", lambda: None)
    found = pools.claims(PAPER)
    for start in ("Radiographs", "Pairs of", "Paired patients", "Evaluable VinDr", "CheXpert"):
        claim = of(found, start)
        assert (claim.verdict, claim.recomputed) == (NOT_CHECKABLE, "-")
        assert "torchxrayvision" in claim.note


@real
def test_the_audit_imports_neither_torch_nor_torchxrayvision():
    program = (
        "import sys; from stamp.paper.audit_claims import audit; "
        "from stamp.paper.printed_tables import read; "
        "audit(read()); sys.exit(bool({'torch', 'torchxrayvision', 'timm'} & set(sys.modules)))"
    )
    library = Path(nih.__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": str(library)})
    assert done.returncode == 0
