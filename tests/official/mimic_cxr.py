"""MIMIC-CXR-JPG in small: the tree of studies and the tables beside it."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from official import OBSERVATIONS, Films, films, lines, mined, observations, save

METADATA = (
    "dicom_id,subject_id,study_id,PerformedProcedureStepDescription,ViewPosition,Rows,Columns,"
    "StudyDate,StudyTime,ProcedureCodeSequence_CodeMeaning,ViewCodeSequence_CodeMeaning,"
    "PatientOrientationCodeSequence_CodeMeaning"
)
LATERAL = 0.3
UNLABELED = 0.05


@dataclass(frozen=True, slots=True)
class Studies:
    """One row a study; ids tell nothing of time."""

    subject: NDArray[np.int64]
    study: NDArray[np.int64]
    date: list[str]
    time: list[str]
    split: NDArray[np.str_]


def make(root: Path, patients: int, seed: int, size: int = 64) -> None:
    """Write pictures and tables: of ten patients four train, one validates, five are tested on."""
    rng = np.random.default_rng([seed, 0x313C])
    taken = films("coast", patients, seed, size)
    studies = _studies(taken, patients, rng)
    tall = np.pad(taken.pictures, ((0, 0), (size // 8, size // 8), (0, 0)))
    side = np.flatnonzero(rng.random(len(taken.patient)) < LATERAL)
    study = np.concatenate([np.arange(len(taken.patient)), side])
    view = np.where(taken.portable, "AP", "PA")
    view[rng.random(len(view)) < 0.02] = ""
    views = np.concatenate([view, np.full(len(side), "LATERAL")])
    ids = [
        "-".join(f"{part:08x}" for part in row) for row in rng.integers(0, 2**32, (len(study), 5))
    ]
    paths = [_path(studies, k, name) for k, name in zip(study, ids, strict=True)]
    save(np.concatenate([tall, tall[side]]), [root / path for path in paths])
    order = np.lexsort((ids, studies.study[study], studies.subject[study]))
    (root / "IMAGE_FILENAMES").write_text("\n".join(paths[k] for k in order) + "\n")
    _pack(root, "metadata", METADATA, _metadata(studies, study, views, ids, order, tall.shape))
    fields = [
        (ids[k], studies.study[study[k]], studies.subject[study[k]], studies.split[study[k]])
        for k in order
    ]
    _pack(root, "split", "dicom_id,study_id,subject_id,split", fields)
    _labels(root, studies, observations(taken.findings, rng), rng)


def _studies(taken: Films, patients: int, rng: np.random.Generator) -> Studies:
    """Ids, splits and times: a patient's visits follow each other, some on one day."""
    subjects = 10_000_000 + np.sort(rng.choice(10_000_000, patients, replace=False))
    count = len(taken.patient)
    start = rng.integers(0, 20_000, patients)
    gaps = rng.choice([0, 1, 40, 400], (patients, taken.visit.max() + 1)).cumsum(axis=1)
    day = start[taken.patient] + gaps[taken.patient, taken.visit]
    # hours grow with the visit, so that visits of one day are in order too
    hour = 3 + 4 * (taken.visit % 5)
    second = rng.integers(0, 60, count)
    return Studies(
        subject=subjects[taken.patient],
        study=50_000_000 + rng.choice(10_000_000, count, replace=False),
        date=[(date(2110, 1, 1) + timedelta(int(n))).strftime("%Y%m%d") for n in day],
        time=[f"{h}15{s:02d}.531" for h, s in zip(hour, second, strict=True)],
        split=np.repeat(["train", "validate", "test"], [4, 1, 5])[taken.patient % 10],
    )


def _path(studies: Studies, study: int, name: str) -> str:
    subject = f"p{studies.subject[study]}"
    return f"files/{subject[:3]}/{subject}/s{studies.study[study]}/{name}.jpg"


def _metadata(
    studies: Studies,
    study: NDArray[np.intp],
    views: NDArray[np.str_],
    ids: list[str],
    order: NDArray[np.intp],
    shape: tuple[int, ...],
) -> list[tuple[object, ...]]:
    """One row an image, by subject and study id."""
    rows: list[tuple[object, ...]] = []
    for k in order:
        at = study[k]
        about = (ids[k], studies.subject[at], studies.study[at], "CHEST", views[k], *shape[1:])
        rows.append((*about, studies.date[at], studies.time[at], "CHEST", "", "Erect"))
    return rows


def _labels(
    root: Path, studies: Studies, truth: NDArray[np.bool_], rng: np.random.Generator
) -> None:
    """Two labelers' tables without rows for some studies; a radiologist's for part of the test."""
    columns = np.argsort(OBSERVATIONS)
    header = ",".join(["subject_id", "study_id", *np.array(OBSERVATIONS)[columns]])
    kept = np.flatnonzero(rng.random(len(truth)) >= UNLABELED)
    for name in ("chexpert", "negbio"):
        written = mined(truth, rng)[:, columns]
        rows = [(studies.subject[k], studies.study[k], *written[k]) for k in kept]
        _pack(root, name, header, rows)
    read = np.flatnonzero((studies.split == "test") & (rng.random(len(truth)) < 0.8))
    answers = truth.astype(np.float64).astype(str)
    header = ",".join(["study_id", *OBSERVATIONS]).replace("Lung Opacity", "Airspace Opacity")
    text = lines(header, [(studies.study[k], *answers[k]) for k in read])
    (root / "mimic-cxr-2.1.0-test-set-labeled.csv").write_text(text)


def _pack(root: Path, name: str, header: str, rows: Sequence[Sequence[object]]) -> None:
    """Write a packed table, the same bytes for the same rows."""
    packed = gzip.compress(lines(header, rows).encode(), mtime=0)
    (root / f"mimic-cxr-2.0.0-{name}.csv.gz").write_bytes(packed)
