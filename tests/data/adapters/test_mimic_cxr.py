"""MIMIC-CXR-JPG: true time, labels of studies, views, versions of the tables, bad input."""

from __future__ import annotations

import csv
import gzip
import shutil
from pathlib import Path

import polars as pl
import pytest
from official import mimic_cxr as official
from PIL import Image

from stamp.config.labels import label_maps as labelmaps
from stamp.core.errors import UserError
from stamp.data.adapters import mimic_cxr
from stamp.data.label_tables import CLASSES
from stamp.data.pairs import consecutive
from stamp.data.views import check_index

ALL = {"splits": ["train", "validate", "test"]}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("mimic")
    official.make(root, patients=60, seed=3, size=32)
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A copy without pictures that a test may change."""
    for file in made.glob("*.csv*"):
        shutil.copy(file, tmp_path)
    return tmp_path


def written(root: Path, name: str) -> list[dict[str, str]]:
    """A table's rows, read by another reader."""
    with gzip.open(root / f"mimic-cxr-2.0.0-{name}.csv.gz", "rt") as lines:
        return list(csv.DictReader(lines))


def rewrite(root: Path, name: str, rows: list[dict[str, str]]) -> None:
    with gzip.open(root / f"mimic-cxr-2.0.0-{name}.csv.gz", "wt") as lines:
        table = csv.DictWriter(lines, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def mistake(root: Path, **options: object) -> str:
    with pytest.raises(UserError) as caught:
        mimic_cxr.index(options, root, seed=1)
    return str(caught.value)


def test_only_the_named_classes_are_labeled(made):
    every = mimic_cxr.index({}, made, 0)
    some = mimic_cxr.index({"classes": ["Edema", "Pneumonia"]}, made, 0)
    for name in CLASSES:
        kept = name in ("Edema", "Pneumonia")
        assert some[name].equals(every[name]) if kept else some[name].null_count() == len(some)
    assert some.drop(CLASSES).equals(every.drop(CLASSES))
    assert "'Mass'" in mistake(made, classes=["Mass"])


def test_every_picture_lies_where_the_index_says(made):
    every = {**ALL, "views": ["AP", "PA", "LATERAL"]}
    index = check_index(mimic_cxr.index(every, made, seed=1), "mimic_cxr")
    assert {Image.open(path).size for path in index["path"]} == {(32, 40)}
    listed = (made / "IMAGE_FILENAMES").read_text().split()
    unviewed = sum(row["ViewPosition"] == "" for row in written(made, "metadata"))
    assert index.height == len(listed) - unviewed
    assert {str(Path(path).relative_to(made)) for path in index["path"]} <= set(listed)


def test_frontal_test_images_are_the_default(made):
    index = mimic_cxr.index({}, made, seed=1)
    split = {row["dicom_id"]: row["split"] for row in written(made, "split")}
    expected = {
        row["dicom_id"]
        for row in written(made, "metadata")
        if row["ViewPosition"] in ("AP", "PA") and split[row["dicom_id"]] == "test"
    }
    assert set(index["image"]) == expected
    assert index["split"].unique().to_list() == ["test"]


def test_order_is_the_place_in_the_patients_time_over_all_views(made):
    rows = written(made, "metadata")
    rows.sort(
        key=lambda row: (
            int(row["StudyDate"]),
            float(row["StudyTime"]),
            row["study_id"],
            row["dicom_id"],
        )
    )
    seen: dict[str, int] = {}
    place = {}
    for row in rows:
        place[row["dicom_id"]] = seen.setdefault(row["subject_id"], 0)
        seen[row["subject_id"]] += 1
    index = mimic_cxr.index(ALL, made, seed=1)
    assert index["order"].to_list() == [place[image] for image in index["image"]]
    assert index["order"].max() > 1


def test_consecutive_pairs_never_go_back_in_time_though_study_ids_do(made):
    index = mimic_cxr.index(ALL, made, seed=1)
    study = dict(index.select("image", "study").iter_rows())
    dates = dict(index.select("image", "date").iter_rows())
    pairs = consecutive(index)
    ends = list(zip(pairs["a"], pairs["b"], strict=True))
    assert all(dates[a] <= dates[b] for a, b in ends)
    assert any(study[a] > study[b] for a, b in ends)


def test_visits_of_one_day_follow_the_clock_not_its_text(root):
    rows = written(root, "metadata")
    first, *_ = rows
    early = {**first, "dicom_id": "f-early", "study_id": "59999999", "StudyTime": "91500.0"}
    late = {**first, "dicom_id": "e-late", "study_id": "50000001", "StudyTime": "101500.0"}
    rewrite(root, "metadata", [early, late])
    split = {"dicom_id": "", "study_id": "", "subject_id": "", "split": "test"}
    rewrite(root, "split", [{**split, "dicom_id": row["dicom_id"]} for row in (early, late)])
    index = mimic_cxr.index({"views": ["AP", "PA", first["ViewPosition"]]}, root, seed=1)
    assert index["image"].to_list() == ["f-early", "e-late"]


@pytest.mark.parametrize("labeler", ["chexpert", "negbio"])
def test_each_image_carries_its_studys_labels_and_an_unlabeled_study_none(made, labeler):
    index = mimic_cxr.index({**ALL, "labeler": labeler}, made, seed=1)
    rows = {row["study_id"]: row for row in written(made, labeler)}
    meant = {"1.0": 1, "0.0": 0, "": 0, "-1.0": None}
    classes = labelmaps.read("mimic_cxr")
    for study, *values in index.select("study", *classes.values()).iter_rows():
        row = rows.get(study)
        assert values == [meant[row[column]] if row else None for column in classes]
    assert set(index["study"]) - set(rows), "some study has no labels"
    unlabeled = [name for name in CLASSES if name not in classes.values()]
    assert index.select(unlabeled).null_count().row(0) == (index.height,) * len(unlabeled)


def test_labelers_differ(made):
    index = [mimic_cxr.index({"labeler": name}, made, seed=1) for name in ("chexpert", "negbio")]
    assert not index[0].equals(index[1])


def test_the_radiologists_labels_have_study_ids_only_and_cover_part_of_the_test(made):
    index = mimic_cxr.index({"labeler": "radiologist"}, made, seed=1)
    with (made / "mimic-cxr-2.1.0-test-set-labeled.csv").open() as lines:
        rows = {row["study_id"]: row for row in csv.DictReader(lines)}
    for study, effusion in index.select("study", "Effusion").iter_rows():
        assert effusion == (float(rows[study]["Pleural Effusion"]) if study in rows else None)
    assert 0 < index["Effusion"].null_count() < index.height


def test_uncertain_and_blank_follow_the_options(made):
    counted = {}
    for uncertain, blank in (("ignore", "zero"), ("zero", "zero"), ("one", "zero")):
        options = {**ALL, "uncertain": uncertain, "blank": blank}
        counted[uncertain] = mimic_cxr.index(options, made, seed=1)["Pneumonia"].sum()
    assert counted["ignore"] == counted["zero"] < counted["one"]
    kept = mimic_cxr.index({**ALL, "blank": "ignore"}, made, seed=1)
    assert kept["Edema"].null_count() > kept.height / 4


def test_tables_of_version_2_1_and_unpacked_ones_are_read(made, root):
    for name in ("metadata", "split", "chexpert"):
        packed = root / f"mimic-cxr-2.0.0-{name}.csv.gz"
        text = gzip.decompress(packed.read_bytes())
        packed.unlink()
        (root / f"mimic-cxr-2.1.0-{name}.csv").write_bytes(text)
    index = mimic_cxr.index({}, root, seed=1)
    assert index.drop("path").equals(mimic_cxr.index({}, made, seed=1).drop("path"))


def test_the_newest_of_several_versions_counts(root):
    old = root / "mimic-cxr-2.0.0-split.csv.gz"
    text = gzip.decompress(old.read_bytes()).decode()
    (root / "mimic-cxr-2.1.0-split.csv").write_text(text.replace(",test", ",train"))
    assert mimic_cxr.index({"splits": ["train"]}, root, seed=1).height > 0
    assert mimic_cxr.index({"splits": ["test"]}, root, seed=1).height == 0


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("2.0.0-metadata.csv.gz", {}),
        ("2.0.0-split.csv.gz", {}),
        ("2.0.0-chexpert.csv.gz", {}),
        ("2.0.0-negbio.csv.gz", {"labeler": "negbio"}),
        ("2.1.0-test-set-labeled.csv", {"labeler": "radiologist"}),
    ],
)
def test_a_missing_table_is_named_with_what_to_do(root, name, options):
    file = root / f"mimic-cxr-{name}"
    file.unlink()
    said = mistake(root, **options)
    assert said.startswith(f"{file}: no such file; MIMIC-CXR-JPG needs a credentialed")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"labeller": "chexpert"}, "unknown option 'labeller': did you mean 'labeler'?"),
        ({"labeler": "chexbert"}, "did you mean 'chexpert'?"),
        ({"splits": ["validation"]}, "did you mean 'validate'?"),
        ({"views": ["LATERALS"]}, "did you mean 'LATERAL'?"),
        ({"views": "PA"}, "expected a list"),
        ({"uncertain": "ones"}, "did you mean 'one'?"),
    ],
)
def test_a_mistaken_option_is_named(made, options, said):
    assert said in mistake(made, **options)


def test_images_without_a_split_or_a_date_and_studies_labeled_twice_are_refused(root):
    labels = written(root, "chexpert")
    rewrite(root, "chexpert", [*labels, labels[0]])
    assert f"study '{labels[0]['study_id']}' stands twice" in mistake(root)
    split = written(root, "split")
    rewrite(root, "split", split[2:])
    assert "2 images of the metadata have no split" in mistake(root)
    rows = written(root, "metadata")
    rewrite(root, "metadata", [{**rows[0], "StudyDate": "May"}, *rows[1:]])
    assert (
        f"1 rows lack an id, a date or a time, the first is of image '{rows[0]['dicom_id']}'"
        in (mistake(root))
    )


def test_the_maker_gives_the_same_files_for_the_same_seed(made, tmp_path):
    official.make(tmp_path, patients=60, seed=3, size=32)
    files = [file for file in sorted(made.rglob("*")) if file.is_file()]
    for file in files:
        assert (tmp_path / file.relative_to(made)).read_bytes() == file.read_bytes()


def test_a_patient_is_in_one_split(made):
    index = mimic_cxr.index(ALL, made, seed=1)
    assert index.group_by("group").agg(pl.col("split").n_unique())["split"].max() == 1
    assert set(index["split"]) == {"train", "validate", "test"}
