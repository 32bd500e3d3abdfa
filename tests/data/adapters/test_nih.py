"""NIH ChestX-ray14: the real table's counts, both numberings, splits by patient, bad input."""

from __future__ import annotations

import csv
import gzip
import shutil
import subprocess
import sys
import tarfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from official import nih as official
from PIL import Image

from stamp.core.errors import UserError
from stamp.data.adapters import nih
from stamp.data.label_tables import CLASSES, shipped
from stamp.data.pairs import semantic_pairs
from stamp.data.views import check_index

TABLE = "Data_Entry_2017_v2020.csv"
REAL = shipped(f"{TABLE}.gz")
real = pytest.mark.skipif(REAL is None, reason="torchxrayvision is not installed")

# Images with each finding as the data set's own documentation counts them.
PUBLISHED = {
    "Atelectasis": 11559,
    "Cardiomegaly": 2776,
    "Consolidation": 4667,
    "Edema": 2303,
    "Effusion": 13317,
    "Emphysema": 2516,
    "Fibrosis": 1686,
    "Hernia": 227,
    "Infiltration": 19894,
    "Mass": 5782,
    "Nodule": 6331,
    "Pleural_Thickening": 3385,
    "Pneumonia": 1431,
    "Pneumothorax": 5302,
}


@pytest.fixture(scope="module")
def all_images(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """The index of the real table, without any image or list."""
    return nih.index({"split": "patients"}, tmp_path_factory.mktemp("empty"), seed=1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("nih")
    official.make(root, patients=60, seed=3, size=32)
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A copy without pictures that a test may change."""
    for file in made.glob("*.*"):
        shutil.copy(file, tmp_path)
    return tmp_path


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def mistake(root: Path, **options: object) -> str:
    with pytest.raises(UserError) as caught:
        nih.index(options, root, seed=1)
    return str(caught.value)


@real
def test_the_shipped_table_has_the_published_images_patients_and_findings(all_images):
    assert all_images.height == 112_120
    assert all_images["group"].n_unique() == 30_805
    assert {name: all_images[name].sum() for name in CLASSES} == PUBLISHED
    assert all_images["numbering"].unique().to_list() == ["v2020"]
    check_index(all_images, "nih")


@real
@pytest.mark.parametrize(
    ("kind", "mode", "order", "count"),
    [
        ("temporal", "one_per_group", "image", 13_302),
        ("temporal", "one_per_group", "order", 13_302),
        ("labeled", "one_per_group", "image", 9_927),
        ("labeled", "one_per_group", "order", 9_918),
        ("temporal", "all_consecutive", "image", 81_315),
        ("temporal", "all_consecutive", "order", 81_315),
        ("labeled", "all_consecutive", "order", 33_394),
        ("changed", "all_consecutive", "order", 81_315 - 33_394),
    ],
)
def test_the_shipped_table_gives_the_pair_counts_of_the_paper(all_images, kind, mode, order, count):
    assert semantic_pairs(all_images, kind, mode, order, CLASSES).height == count


@real
def test_one_labeled_pair_more_than_by_text_since_one_writes_its_findings_in_another_order():
    with gzip.open(REAL, "rt") as file:
        rows = list(csv.DictReader(file))
    by_patient: dict[str, list[tuple[int, str]]] = {}
    for row in rows:
        visit = (int(row["Follow-up #"]), row["Finding Labels"])
        by_patient.setdefault(row["Patient ID"], []).append(visit)
    texts = [
        (a, b) for visits in by_patient.values() for (_, a), (_, b) in pairwise(sorted(visits))
    ]
    assert sum(a == b for a, b in texts) == 33_393
    assert sum(sorted(a.split("|")) == sorted(b.split("|")) for a, b in texts) == 33_394


@real
def test_numbers_of_2017_are_those_of_the_file_names_and_give_the_papers_pairs(
    all_images, tmp_path
):
    old = nih.index({"split": "patients", "numbering": "2017"}, tmp_path, seed=1)
    assert old["order"].to_list() == [int(name[9:12]) for name in old["image"]]
    assert semantic_pairs(old, "labeled", "one_per_group", "order", CLASSES).height == 9_927
    share = (old["order"] != all_images["order"]).mean()
    assert share == pytest.approx(0.215, abs=5e-4)


@real
def test_patients_are_split_in_the_shares_asked_for_and_each_is_in_one_split(all_images):
    patients = all_images.group_by("group").agg(pl.col("split").unique())
    assert (patients["split"].list.len() == 1).all()
    shares = dict(patients["split"].list.first().value_counts(normalize=True).rows())
    expected = {"test": 0.2, "val": 0.8 * 0.1, "calibration": 0.8 * 0.05, "train": 0.8 * 0.85}
    for name, share in expected.items():
        # five standard deviations of a binomial count
        assert shares[name] == pytest.approx(share, abs=5 * (share * (1 - share) / 30_805) ** 0.5)


@real
def test_reading_the_shipped_table_imports_neither_torchxrayvision_nor_torch(tmp_path):
    program = (
        "import sys; from pathlib import Path; from stamp.data.adapters import nih; "
        f"nih.index({{'split': 'patients'}}, Path({str(tmp_path)!r}), 1); "
        "sys.exit(bool({'torch', 'torchxrayvision'} & set(sys.modules)))"
    )
    scripts = Path(nih.__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": str(scripts)})
    assert done.returncode == 0


def test_the_official_lists_decide_what_is_tested_on(made):
    index = nih.index({"val": 0.3, "calibration": 0.2}, made, seed=1)
    listed = (made / "test_list.txt").read_text().split()
    assert index.filter(pl.col("split") == "test")["image"].to_list() == sorted(listed)
    assert set(index["split"]) == {"train", "val", "calibration", "test"}
    assert index.group_by("group").agg(pl.col("split").n_unique())["split"].max() == 1


def test_every_picture_of_the_index_is_there_and_readable(made):
    index = check_index(nih.index({}, made, seed=1), "nih")
    assert len(list((made / "images").iterdir())) == index.height
    sizes = {Image.open(path).convert("L").size for path in index["path"]}
    assert sizes == {(32, 32)}


def test_labels_are_those_of_the_text(made):
    index = nih.index({}, made, seed=1)
    with (made / TABLE).open() as file:
        rows = {row["Image Index"]: row for row in csv.DictReader(file)}
    for image, *values in index.select("image", *CLASSES).iter_rows():
        found = set(rows[image]["Finding Labels"].split("|")) - {"No Finding"}
        assert {name for name, value in zip(CLASSES, values, strict=True) if value} == found


def test_both_versions_of_the_table_agree_in_all_but_the_numbers(made, tmp_path):
    official.make(tmp_path, patients=60, seed=3, size=32, version="2017")
    new, old = nih.index({}, made, seed=1), nih.index({}, tmp_path, seed=1)
    same = [name for name in new.columns if name not in ("path", "order", "numbering")]
    assert new.select(same).equals(old.select(same))
    assert old["numbering"].unique().to_list() == ["2017"]
    assert old["order"].to_list() == [int(name[9:12]) for name in old["image"]]
    assert not new["order"].equals(old["order"])


def test_the_numbering_is_read_from_the_content_not_from_the_name(root):
    (root / TABLE).rename(root / "Data_Entry_2017.csv")
    assert nih.index({}, root, seed=1)["numbering"].unique().to_list() == ["v2020"]


def test_asking_the_table_of_2017_for_the_numbers_of_2020_is_refused(tmp_path):
    official.make(tmp_path, patients=12, seed=3, size=32, version="2017")
    assert "carries the follow-up numbers of 2017" in mistake(tmp_path, numbering="v2020")


def test_a_packed_table_and_one_that_the_user_names_are_read(root):
    packed = gzip.compress((root / TABLE).read_bytes())
    before = nih.index({}, root, seed=1)
    (root / TABLE).rename(root / "mine.csv")
    assert nih.index({"metadata": "mine.csv"}, root, seed=1).equals(before)
    (root / f"{TABLE}.gz").write_bytes(packed)
    assert nih.index({}, root, seed=1).equals(before)


def test_ages_in_months_and_days_missing_columns_spaces_and_empty_lines_are_understood(tmp_path):
    (tmp_path / "Data_Entry_2017.csv").write_text(
        "\ufeffImage Index,Finding Labels,Follow-up #,Patient ID,Patient Age,OriginalImage[Width\n"
        "00000007_000.png,Mass | Hernia,000,00000007,058Y,9,,\n\n"
        "00000007_001.png,No Finding,001,00000007,030M,9\n"
        "00000012_000.png,No Finding,000,00000012,400D,9\n"
    )
    index = nih.index({"split": "patients"}, tmp_path, seed=1)
    assert index["age"].to_list() == [58, 2, 1]
    assert index["group"].to_list() == ["7", "7", "12"]
    assert index["sex"].to_list() == [None] * 3
    assert index.schema["age"] == pl.Int16
    assert index.select(pl.sum_horizontal(CLASSES)).to_series().to_list() == [2, 0, 0]


def test_a_patients_split_depends_on_the_seed_and_the_patient_only(root):
    options = {"split": "patients", "val": 0.3, "calibration": 0.3}
    whole = nih.index(options, root, seed=5)
    assert nih.index(options, root, seed=5).equals(whole)
    assert not nih.index(options, root, seed=6)["split"].equals(whole["split"])
    header, *rows = (root / TABLE).read_text().splitlines()
    (root / TABLE).write_text("\n".join([header, *rows[::-3]]))
    part = nih.index(options, root, seed=5)
    known = dict(whole.select("image", "split").iter_rows())
    assert part["split"].to_list() == [known[image] for image in part["image"]]


def test_the_seed_never_moves_a_patient_across_the_official_lists(made):
    splits = [nih.index({}, made, seed=seed)["split"] == "test" for seed in (1, 2, 3)]
    assert splits[0].equals(splits[1]) and splits[1].equals(splits[2])


def test_archives_hold_the_pictures_as_the_official_ones_do(tmp_path):
    official.make(tmp_path, patients=10, seed=2, size=32)
    index = nih.index({}, tmp_path, seed=1)
    before = {path: Path(path).read_bytes() for path in index["path"]}
    archives = official.archives(tmp_path)
    assert [file.name for file in archives] == ["images_001.tar.gz", "images_002.tar.gz"]
    assert nih.index({}, tmp_path, seed=1).equals(index), "an index needs no picture"
    for file in archives:
        with tarfile.open(file) as archive:
            archive.extractall(tmp_path, filter="data")
    assert {path: Path(path).read_bytes() for path in index["path"]} == before


def test_the_maker_gives_the_same_files_for_the_same_seed(made, tmp_path):
    official.make(tmp_path, patients=60, seed=3, size=32)
    for file in sorted(made.rglob("*.*")):
        assert (tmp_path / file.relative_to(made)).read_bytes() == file.read_bytes()


def test_made_pictures_show_their_findings(made):
    index = nih.index({}, made, seed=1)
    pixels = np.stack([np.asarray(Image.open(path).convert("L")) for path in index["path"]])
    wet = index["Effusion"].to_numpy() == 1
    lower = pixels[:, 16:26].mean(axis=(1, 2))
    assert lower[wet].mean() > lower[~wet].mean() + 3


@pytest.mark.parametrize("name", ["train_val_list.txt", "test_list.txt"])
def test_missing_lists_are_named_with_where_to_get_them_and_the_other_way(root, name):
    (root / name).unlink()
    said = mistake(root)
    assert said.startswith(f"{root / name}: no such file; ")
    assert "nihcc.app.box.com/v/ChestXray-NIHCC" in said and "split: patients" in said


def test_images_in_neither_list_are_counted(root):
    lines = (root / "test_list.txt").read_text().split()
    (root / "test_list.txt").write_text("\n".join(lines[3:]))
    assert (
        "3 images of the table are in neither train_val_list.txt nor test_list.txt, the "
        f"first is '{lines[0]}'" in mistake(root)
    )


def test_lists_that_share_a_patient_are_refused(root):
    lines = (root / "train_val_list.txt").read_text().split()
    moved = next(b for a, b in pairwise(lines) if a[:8] == b[:8])
    (root / "train_val_list.txt").write_text("\n".join(x for x in lines if x != moved))
    with (root / "test_list.txt").open("a") as file:
        file.write(f"\r\n{moved}\r\n")
    said = mistake(root)
    assert "1 patients are in both train_val_list.txt and test_list.txt" in said
    assert f"the first is {int(moved[:8])}" in said


def test_an_image_on_both_lists_is_refused(root):
    image = (root / "train_val_list.txt").read_text().split()[0]
    with (root / "test_list.txt").open("a") as file:
        file.write(f"\n{image}")
    assert f"name image '{image}' twice" in mistake(root)


def test_an_unknown_finding_is_refused_with_the_nearest_name(root):
    edit(root / TABLE, "Effusion", "Efusion")
    assert "unknown finding 'Efusion': did you mean 'Effusion'?" in mistake(root)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"spilt": "official"}, "unknown option 'spilt': did you mean 'split'?"),
        ({"split": "patient"}, "did you mean 'patients'?"),
        ({"numbering": "2020"}, "did you mean 'v2020'?"),
        ({"val": 1.5}, "option 'val' is 1.5; expected a share"),
        ({"calibration": True}, "option 'calibration' is True; expected a share"),
        ({"val": 0.6, "calibration": 0.4}, "leave no patient to train"),
        ({"metadata": "gone.csv"}, "gone.csv: no such file; NIH ChestX-ray14 is open"),
    ],
)
def test_a_mistaken_option_is_named(root, options, said):
    assert said in mistake(root, **options)


def test_a_table_without_a_needed_column_or_number_is_refused(root):
    edit(root / TABLE, ",Follow-up #,", ",Followup #,")
    assert "no column 'Follow-up #': did you mean 'Followup #'?" in mistake(root)
    edit(root / TABLE, ",Followup #,", ",Follow-up #,")
    edit(root / TABLE, ",0,1,", ",first,1,")
    assert "1 rows lack an image, findings, a follow-up number or a patient" in mistake(root)


def test_a_file_that_is_no_table_is_refused_by_name(root):
    (root / TABLE).write_text("")
    assert f"{root / TABLE}: can't be read as a CSV file" in mistake(root)
