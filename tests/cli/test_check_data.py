"""`python -m stamp check-data` says what images yield and what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from PIL import Image
from project import PHANTOM, ROOT, model

from stamp.__main__ import main
from stamp.cli.check_data.pairs import pair_counts
from stamp.cli.data_argument import read_options

RNG = np.random.default_rng(1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Follow-up #", "Follow-up #"),
        ("#", "#"),
        ("% slope: 1", "% slope: 1"),
        ("2024-01-01", "2024-01-01"),
        ("[split, class]", ["split", "class"]),
        ("{test: 1}", {"test": 1}),
        ('"a"', "a"),
        ("3", 3),
        ("null", None),
    ],
)
def test_the_value_of_an_option_is_a_name_as_it_stands_unless_it_is_more(
    text: str, value: object
) -> None:
    assert read_options([f"order={text}"]) == {"order": value}


def picture(path: Path, flat: bool = False, **extra: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((30, 20), 7) if flat else RNG.integers(0, 256, size=(30, 20))
    Image.fromarray(pixels.astype(np.uint8)).save(path, **extra)


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of 24 patients with up to three visits, and their pictures."""
    monkeypatch.chdir(tmp_path)
    rows = ["file,patient,date,split,Edema,Mass"]
    for patient in range(24):
        for visit in range(1 + patient % 3):
            name = f"images/{patient}-{visit}.png"
            picture(tmp_path / "clinic" / name)
            split = "calibration" if patient % 6 == 5 else "test"
            rows.append(f"{name},p{patient},2024-0{visit + 1}-01,{split},{patient % 2},{visit % 2}")
    (tmp_path / "clinic" / "table.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["check-data", *arguments])
    out = capsys.readouterr()
    assert out.err == ""
    return code, out.out


def test_pairs_are_counted_as_a_loop_over_all_images_counts_them() -> None:
    rng = np.random.default_rng(0)
    rows = pl.DataFrame(
        {
            "image": [f"{n:03d}" for n in range(60)],
            "group": [f"g{n}" for n in rng.integers(0, 15, 60)],
            "order": pl.Series(rng.permutation(60), dtype=pl.Int32),
            "A": pl.Series(rng.integers(0, 2, 60), dtype=pl.Int8),
        }
    )
    found = pair_counts(rows, ["A"])
    follow = same = other = across = within = firsts = 0
    for group in sorted(set(rows["group"])):
        mine = sorted(
            (row for row in rows.iter_rows(named=True) if row["group"] == group),
            key=lambda row: row["order"],
        )
        pairs = list(pairwise(mine))
        follow, firsts = follow + len(pairs), firsts + bool(pairs)
        same += sum(a["A"] == b["A"] for a, b in pairs)
        other += sum(a["A"] != b["A"] for a, b in pairs)
    for a, b in combinations(rows.iter_rows(named=True), 2):
        within += a["A"] == b["A"] and a["group"] != b["group"]
        across += a["group"] != b["group"]
    assert found == {
        "temporal, all consecutive": follow,
        "temporal, one per group": firsts,
        "labeled, all consecutive": same,
        "labeled, one per group": found["labeled, one per group"],
        "changed, all consecutive": other,
        "class, same label": within,
        "random, different groups": across,
    }
    unordered = pair_counts(rows.with_columns(order=pl.lit(None, dtype=pl.Int32)), ["A"])
    assert unordered["temporal, one per group"] == "no visit or date"
    assert pair_counts(rows, ["B"])["labeled, all consecutive"] == "no labels"


def test_a_good_table_is_described_and_its_warnings_are_no_failure(
    clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = said(capsys, "clinic/table.csv")
    assert code == 0
    assert "clinic/table.csv: 48 images of 24 groups, 1 to 3 per group; 16 groups have two" in text
    assert "splits: calibration 12, test 36" in text
    assert "positives: Edema 24, Mass 16" in text
    assert "opened: 48 of 48 images (PNG 48), 20 x 30 to 20 x 30 pixels" in text
    assert "temporal, all consecutive           16" in text
    assert "temporal, one per group             12" in text
    assert "score 0.5: 9,604 independent pairs needed; 16 pairs of 12 groups" in text
    assert text.rstrip().endswith("0 errors, 1 warning")


def test_a_wider_interval_needs_fewer_pairs(
    clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, text = said(capsys, "clinic/table.csv", "--half-width", "0.9")
    assert "too few" not in text
    assert "0 errors, 0 warnings" in text


def test_every_mistake_is_a_line_and_the_exit_code_says_so(
    clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (clinic / "clinic" / "images" / "2-0.png").unlink()
    (clinic / "clinic" / "images" / "2-1.png").write_bytes(b"no picture")
    picture(clinic / "clinic" / "images" / "3-0.png", flat=True)
    tags = Image.Exif()
    tags[0x0112] = 6
    picture(clinic / "clinic" / "images" / "6-0.png", exif=tags)
    code, text = said(capsys, "clinic/table.csv")
    assert code == 1
    lines = [line for line in text.splitlines() if line.startswith(("error", "warning"))]
    assert lines[0].startswith("error: 1 of 48 images are missing in clinic, first images/2-0.png")
    assert lines[1].startswith(
        "error: clinic/images/2-1.png: can't be read as an image: is not PNG"
    )
    assert lines[2].startswith("warning: 1 of the opened images show one value only, first clinic/")
    assert lines[3].startswith("warning: 1 of the opened images carry an EXIF orientation")
    assert "2 errors, 3 warnings" in text


def test_a_broken_table_or_an_unknown_name_is_one_line(
    clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = said(capsys, "clinic/table.csv", "--option", "group=patients")
    assert code == 1
    assert "did you mean 'patient'?" in text
    code, text = said(capsys, "clinic/tabel.csv", "clinic/table.csv")
    assert code == 1
    assert "error: 'clinic/tabel.csv': no such file or folder, and no such" in text
    assert "48 images of 24 groups" in text  # the second is looked at all the same
    for wrong in (
        ["--half-width", "0"],
        ["--half-width", "nan"],
        ["--level", "1"],
        ["--seed", "-1"],
    ):
        with pytest.raises(SystemExit) as caught:
            main(["check-data", "clinic/table.csv", *wrong])
        assert caught.value.code == 2


def edited(clinic: Path, column: str, value: str, rows: range) -> str:
    """The table with another value in some rows, as a new file."""
    table = pl.read_csv(clinic / "clinic" / "table.csv", infer_schema=False)
    there = pl.int_range(pl.len()).is_between(rows.start, rows.stop - 1)
    changed = table.with_columns(pl.when(there).then(pl.lit(value)).otherwise(column).alias(column))
    changed.write_csv(clinic / "clinic" / "edited.csv")
    return "clinic/edited.csv"


@pytest.mark.parametrize("value", ["O", "-1", "NA"])
def test_a_label_column_with_a_typo_is_refused(
    clinic: Path, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    code, text = said(capsys, edited(clinic, "Edema", value, range(3, 5)))
    assert code == 1
    assert f"column 'Edema' is 0 or 1 but for '{value}' in 2 rows, first row 5" in text


def test_a_column_of_zero_and_one_with_another_number_is_warned_of(
    clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be a grade or a count, and so no class; or its class is gone."""
    value = "2"
    _, text = said(capsys, edited(clinic, "Edema", value, range(3, 5)))
    assert "positives: Mass " in text
    image = "images/2-0.png"
    assert (
        f"warning: the column 'Edema' is 0 or 1 in 46 rows, but '{value}' of image '{image}'"
        in (text)
    )
    _, text = said(capsys, "clinic/table.csv")
    assert "the column" not in text


def test_a_class_that_no_study_would_take_is_an_error(
    clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = Path("clinic/table.csv")
    table.write_text(table.read_text().replace("Mass", "<b>Mass</b>", 1))
    code, text = said(capsys, str(table))
    assert code == 1
    (line,) = [one for one in text.splitlines() if one.startswith("error: ")]
    assert "'<b>Mass</b>'" in line and "HTML tag" in line


def test_a_missing_date_is_warned_of_once(clinic: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, text = said(capsys, edited(clinic, "date", "", range(1, 2)))
    assert text.count("warning: 1 of 36 images have no visit or date, first 'images/1-0.png'") == 1
    assert "temporal, all consecutive           15" in text  # one less, of a patient of two visits
    code, text = said(capsys, edited(clinic, "date", "nan", range(1, 2)))
    assert code == 1
    assert "'date' of 1 rows is neither a number nor an ISO date" in text


def test_tables_without_labels_have_no_labeled_pairs(
    clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unknown label equals an unknown label, but where all are unknown there is no label."""
    rows = range(0, 48)
    table = pl.read_csv(clinic / edited(clinic, "Edema", "", rows), infer_schema=False)
    for name, empty in (("Edema", ["Edema", "Mass"]), ("label", ["Edema"])):
        kept = table.drop("Mass") if name == "label" else table
        cleared = kept.with_columns(pl.lit("").alias(one) for one in empty)
        cleared.rename({"Edema": name}).write_csv(clinic / "clinic" / "none.csv")
        _, text = said(capsys, "clinic/none.csv")
        assert "labeled, all consecutive          none: no labels" in text
        assert "warning: no labels: there is no source metric" in text
        assert "temporal, all consecutive           16" in text


def test_one_group_alone_has_no_random_pair(
    clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = said(capsys, edited(clinic, "patient", "p1", range(0, 48)))
    assert code == 1
    assert "error: no random pair: all images are of one group" in text
    assert "1 group has two or more" in text


def test_a_table_in_another_encoding_and_paths_of_windows_are_told(
    clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = edited(clinic, "patient", "M\u00fcller", range(0, 9))
    (clinic / file).write_bytes((clinic / file).read_text().encode("latin-1"))
    code, text = said(capsys, file)
    assert code == 1
    assert f"error: {file}: is not UTF-8: save it as CSV in UTF-8" in text
    code, text = said(capsys, edited(clinic, "file", "images\\0-0.png", range(0, 1)))
    assert code == 1
    assert "first images\\0-0.png; write folders with /, not with \\" in text


def test_patients_in_two_splits_and_files_used_twice_are_warned_of(
    clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = clinic / "clinic" / "table.csv"
    text = table.read_text().replace("images/1-1.png,p1,2024-02-01,test", "images/1-1.png,p1,3,x")
    table.write_text(text.replace("2024-0", ""))
    code, text = said(capsys, "clinic/table.csv", "-o", "order=patient")
    assert code == 1 and "neither a number nor an ISO date" in text
    lines = table.read_text().splitlines()
    lines[0] = "file,patient,when,split,Edema,Mass"
    lines.append("./images/0-0.png,p0,9,test,0,0")
    table.write_text("\n".join(lines))
    code, text = said(capsys, "clinic/table.csv")
    assert code == 0
    assert "warning: 1 group in several splits, first 'p1' in test and x: a model may" in text
    assert "warning: 2 rows share their file with another, first clinic/images/0-0.png" in text
    assert "temporal, all consecutive         none: no visit or date" in text


def test_the_kind_of_pairs_that_is_used_is_said(
    clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = clinic / "clinic" / "table.csv"
    rows = pl.read_csv(table).drop("Mass").rename({"Edema": "label"})
    rows.write_csv(table)
    _, text = said(capsys, "clinic/table.csv")
    assert (
        "used: temporal pairs (consecutive images of one group), since groups have visits" in text
    )
    rows.drop("date").write_csv(table)
    _, text = said(capsys, "clinic/table.csv")
    assert "used: class pairs (two images of one class and of different groups), since no" in text
    assert "intervals resample groups" in text and "from class pairs" in text
    rows.drop("date", "patient").write_csv(table)
    _, text = said(capsys, "clinic/table.csv")
    assert "used: class pairs (two images of one class), since no group has visits" in text
    assert "intervals resample images" in text


def test_a_folder_a_class_is_counted_by_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("cat", "dog"):
        for number in range(10):
            picture(tmp_path / "pets" / "test" / name / f"{number}.png")
    code, text = said(capsys, "pets", "--option", "levels=[split, class]")
    assert code == 0
    assert "classes: cat 10, dog 10" in text
    assert "class, same label                   90" in text
    assert "random, different groups           100" in text
    assert "20 images give" in text
    assert "warning: no split 'calibration'" in text


def configured(folder: Path, **changes: object) -> None:
    """The clinic as a data set, and a study of it."""
    study = {
        **PHANTOM,
        "classes": ["Edema", "Mass"],
        "source": {"dataset": "clinic", "train": "train"},
        "pairs": {"split": "test", "semantic": "temporal", "max_pairs": 10},
        "calibration": {"split": "calibration", "n_images": 10},
        "zoo": ["mine"],
        **changes,
    }
    study.pop("targets")
    about = {"title": "x", "licence": "none", "citation": "none", "access": "form"}
    documents = {
        "config.yaml": {"studies": ["mine"], "seed": 3},
        "datasets.yaml": {"clinic": {"adapter": "csv", "root": "clinic", **about}},
        "studies/mine.yaml": study,
        "zoo/mine.yaml": {"linear": model("linear", "Linear")},
    }
    for name, document in documents.items():
        (folder / "config" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "config" / name).write_text(yaml.safe_dump(document))


def test_a_study_says_what_its_source_lacks(
    clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configured(clinic)
    code, text = said(capsys, "mine")
    assert code == 1
    assert "error: no image of split 'train', which source.train names and trained models" in text
    assert "note: no targets: the study ends in a ranked leaderboard" in text
    assert text.count("error: ") == 1
    configured(
        clinic,
        pairs={"split": "test", "semantic": "temporal", "max_pairs": 99, "also": {"labeled": 5}},
        calibration={"split": "calibration", "n_images": 40},
        classes=["Edema", "Mas"],
    )
    code, text = said(capsys, "mine")
    assert code == 1
    assert "error: 16 temporal pairs are eligible, the study asks for 99" in text
    assert "error: 0 labeled pairs are eligible, the study asks for 5" in text
    assert "no label column 'Mas': did you mean 'Mass'?" in text


def test_a_rule_that_would_exclude_every_model_is_warned_of(
    clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configured(clinic, calibration={"split": "calibration", "n_images": 10, "exclude": "chance"})
    assert "the rule 'chance' will exclude every model" not in said(capsys, "mine")[1]
    configured(
        clinic,
        calibration={"split": "calibration", "n_images": 10, "exclude": "chance"},
        statistics={"minimum": 10},
    )
    assert "the rule 'chance' will exclude every model" in said(capsys, "mine")[1]


def test_a_study_goes_before_a_data_set_of_its_name(
    clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configured(clinic)
    (clinic / "config" / "studies" / "mine.yaml").rename(clinic / "config/studies/clinic.yaml")
    assert "pairs that study 'clinic' (split test) yields" in said(capsys, "clinic")[1]


def test_scores_that_are_there_take_the_place_of_assumptions(
    clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configured(clinic)
    folder = clinic / "results" / "mine" / "scores"
    folder.mkdir(parents=True)
    row = {"estimator": "exact", "n_semantic": 30, "n_units": 10, "low": 0.3, "high": 0.5}
    pl.DataFrame([row]).write_parquet(folder / "linear.parquet")
    _, text = said(capsys, "mine", "--half-width", "0.05")
    assert "measured: 1 model with half-widths 0.100 to 0.100 at 10 groups" in text
    assert "10 groups are there, about 40 are needed for a half-width of 0.05" in text
    assert "assumed" not in text
    pl.DataFrame([{**row, "estimator": "sampled"}]).write_parquet(folder / "linear.parquet")
    assert "assumed" in said(capsys, "mine")[1]  # of another estimator: no measure of this one


def test_what_the_workflow_makes_is_looked_at_once_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    about = {"title": "x", "licence": "none", "citation": "none", "access": "generated"}
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "datasets.yaml").write_text(
        yaml.safe_dump({"made": {"adapter": "phantom", **about}})
    )
    code, text = said(capsys, "made")
    assert code == 1
    assert "data set 'made' is made by the workflow and not made yet: run `snakemake" in text


def test_a_reader_that_has_seen_enough_is_no_mistake(clinic: Path) -> None:
    """A pipe whose reader is gone before anything is printed."""
    command = (
        f"{sys.executable} -m stamp check-data clinic/table.csv | true; echo ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "PYTHONPATH": str(ROOT / "workflow" / "scripts")},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "0\n"
    assert done.stderr == ""


def test_pairs_of_one_day_and_of_two_views_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of each patient three images on two days: one pair within a day, one that changes the view"""
    monkeypatch.chdir(tmp_path)
    rows = ["file,patient,date,split,view,Edema,Mass"]
    for patient in range(6):
        for number, (date, view) in enumerate([(1, "PA"), (1, "PA"), (2, "AP")]):
            name = f"{patient}-{number}.png"
            picture(tmp_path / name)
            rows.append(f"{name},p{patient},2024-01-0{date},test,{view},{patient % 2},{number % 2}")
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    _, text = said(capsys, "t.csv")
    assert "6 of 12 consecutive pairs are of one visit or day" in text
    assert "6 of 12 consecutive pairs change the view (column 'view'): `same: [view]`" in text


def test_columns_without_a_name_are_left_out(
    clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = clinic / "clinic" / "table.csv"
    head, *lines = file.read_text().splitlines()
    numbered = [f",{head},", *(f"{number},{line},1" for number, line in enumerate(lines))]
    before = said(capsys, "clinic/table.csv")
    file.write_text("\n".join(numbered) + "\n")
    assert said(capsys, "clinic/table.csv") == before


def test_a_report_for_programs_has_the_counts_of_the_text(
    clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import json

    code, text = said(capsys, "clinic/table.csv", "--json")
    found = json.loads(text)["clinic/table.csv"]
    assert code == 0
    assert (found["images"], found["groups"]) == (48, 24)
    assert found["pairs"]["temporal, all consecutive"] == 16
    assert found["classes"] == ["Edema", "Mass"]
    assert found["errors"] == []
