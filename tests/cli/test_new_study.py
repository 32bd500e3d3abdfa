"""`python -m stamp new-study` finds out what images are, and writes a study that can be planned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image
from project import ROOT

from stamp.__main__ import main
from stamp.cli.new_study import project_files
from stamp.cli.new_study.folder_levels import guessed_levels
from stamp.cli.new_study.proposal import target_key
from stamp.cli.new_study.splits_found import splits_of
from stamp.config.plan import read_plan, read_project
from stamp.core.errors import UserError

RNG = np.random.default_rng(5)


def picture(path: Path, size: tuple[int, int] = (40, 30), gray: bool = True) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = size[::-1] if gray else (*size[::-1], 3)
    Image.fromarray(RNG.integers(0, 256, shape).astype(np.uint8)).save(path)


def table(folder: Path, header: str, rows: list[str], images: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "table.csv"
    file.write_text("\n".join([header, *rows]) + "\n")
    for row in rows if images else ():
        picture(folder / row.split(",")[0])
    return file


def visits(groups: int = 12) -> list[str]:
    """Three visits of each patient; a third of the patients is for calibration."""
    return [
        f"i/{group}-{visit}.png,p{group},{2020 + visit}-01-01,"
        f"{'calibration' if group % 3 == 0 else 'test'},{group % 2},{visit % 2}"
        for group in range(groups)
        for visit in range(3)
    ]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration without studies; the dry run is tested with Snakemake in tests/workflow."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.yaml").write_text("studies: [none]\nseed: 0\n")
    (tmp_path / "config" / "datasets.yaml").write_text("# mine\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(project_files, "dry_run", lambda **_: [])
    return tmp_path


def config_of(project: Path) -> dict[str, str]:
    files = (project / "config").rglob("*.yaml")
    return {str(file.relative_to(project)): file.read_text() for file in files}


def test_a_table_of_visits_becomes_a_multilabel_study_that_is_read(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table(project / "mine", "file,patient,date,split,Edema,Mass", visits())
    assert main(["new-study", "clinic", "--data", "mine/table.csv"]) == 0
    out = capsys.readouterr().out
    assert "snakemake --cores 8 --resources gpu=1 --config 'studies=[clinic]'" in out
    study = read_project().read_study("clinic", may_lack_models=True)
    assert (study.task, study.classes) == ("multilabel", ["Edema", "Mass"])
    # 8 test patients with three visits: two consecutive pairs each
    assert (study.pairs.semantic, study.pairs.max_pairs) == ("temporal", 16)
    assert (study.pairs.split, study.calibration.split) == (["test"], "calibration")
    assert study.calibration.n_images == 12
    assert study.preprocessing == {"channels": 1, "size": 30}
    options = read_project().datasets["clinic"].options
    roles = {"image": "file", "group": "patient", "order": "date", "split": "split"}
    assert {role: options[role] for role in roles} == roles
    assert (project / "config" / "datasets.yaml").read_text().startswith("# mine\n")
    with pytest.raises(UserError, match="no model that can be scored"):
        read_plan(["clinic"])


def test_check_data_takes_the_study_before_its_zoo_exists(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table(project / "mine", "file,patient,date,split,Edema,Mass", visits())
    assert main(["new-study", "clinic", "--data", "mine/table.csv"]) == 0
    (project / "config" / "zoo" / "clinic.yaml").unlink()
    capsys.readouterr()
    assert main(["check-data", "clinic"]) == 0
    assert "0 errors" in capsys.readouterr().out


def test_folders_become_a_multiclass_study_with_a_target_of_fewer_classes(project: Path) -> None:
    for number in range(30):
        for kind in ("cat", "dog"):
            picture(project / "pets" / kind / f"{number}.png", gray=False)
    for number in range(4):
        picture(project / "Elsewhere 2" / "dog" / f"{number}.png", gray=False)
        picture(project / "Elsewhere 2" / "cat" / f"{number}.png", gray=False)
    assert main(["new-study", "pets", "--data", "pets", "--target", "Elsewhere 2"]) == 0
    study = read_project().read_study("pets", may_lack_models=True)
    assert (study.task, study.classes) == ("multiclass", ["cat", "dog"])
    assert (study.pairs.semantic, study.preprocessing["channels"]) == ("class", 3)
    assert study.targets["elsewhere-2"].outcomes == "whole"
    assert read_project().datasets["elsewhere-2"].options["classes"] == ["cat", "dog"]


def test_a_multilabel_target_says_which_classes_it_is_labeled_for(project: Path) -> None:
    table(project / "mine", "file,patient,date,split,Edema,Mass", visits())
    rows = [f"i/{n}.png,{n % 2},{n % 3 % 2}" for n in range(9)]
    table(project / "north", "file,Mass,Hernia", rows)
    given = ["new-study", "clinic", "--data", "mine/table.csv", "--target", "north/table.csv"]
    assert main(given) == 0
    study = read_project().read_study("clinic", may_lack_models=True)
    assert study.targets["north"].classes == {"all": ["Mass"]}


def test_one_column_of_labels_becomes_two_classes(project: Path) -> None:
    rows = [f"i/{n}.png,{n % 2}" for n in range(40)]
    table(project / "mine", "file,ill", rows)
    assert main(["new-study", "one", "--data", "mine/table.csv"]) == 0
    study = read_project().read_study("one", may_lack_models=True)
    assert (study.task, study.classes) == ("multiclass", ["no ill", "ill"])


def test_a_study_without_images_is_written_for_outputs_that_are_brought(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table(project / "mine", "file,patient,date,split,Edema,Mass", visits(), images=False)
    assert main(["new-study", "clinic", "--data", "mine/table.csv"]) == 0
    assert "only outputs that you bring" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["clinic", "--data", "nothing.csv"], "'nothing.csv': no such file"),
        (["datasets", "--data", "mine/table.csv"], "'datasets' can't be the name"),
        (["clinic", "--data", "mine/table.csv", "-o", "group=patients"], "did you mean 'patient'"),
        (["clinic", "--data", "mine/table.csv", "--target", "bare/table.csv"], "none of Edema"),
        (["clinic", "--data", "bare/table.csv"], "no labels found"),
        (["Meine Klinik", "--data", "mine/table.csv"], "such as 'meine-klinik'"),
        (["taken", "--data", "mine/table.csv"], "taken.yaml: this study is there already"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_every_file_as_it_was(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    table(project / "mine", "file,patient,date,split,Edema,Mass", visits())
    table(project / "bare", "file,patient", ["a.png,1", "b.png,2"])
    (project / "config" / "studies").mkdir()
    (project / "config" / "studies" / "taken.yaml").write_text("title: mine\n")
    before = config_of(project)
    assert main(["new-study", *arguments]) == 1
    said = capsys.readouterr()
    assert line in said.err
    assert said.err.count("\n") == 1
    assert config_of(project) == before


def test_a_failed_plan_or_write_leaves_every_file_as_it_was(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table(project / "mine", "file,patient,date,split,Edema,Mass", visits())
    before = config_of(project)
    given = ["new-study", "clinic", "--data", "mine/table.csv"]
    (project / "config" / "zoo").write_text("in the way of the folder")  # the last to be written
    assert main(given) == 1
    assert (project / "config" / "zoo").is_file()
    assert config_of(project) == before
    (project / "config" / "zoo").unlink()

    def refuses(**_: object) -> None:
        raise UserError("no plan")

    monkeypatch.setattr(project_files, "dry_run", refuses)
    assert main(given) == 1
    assert config_of(project) == before
    assert "no plan" in capsys.readouterr().err


def files_of(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*")}


def test_a_folder_without_a_project_becomes_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "mine", "file,patient,date,split,Edema,Mass", visits())
    before = files_of(tmp_path)

    def planned_here(**_: object) -> list[object]:
        assert Path("Snakefile").is_file() and Path("config/config.yaml").is_file()
        return []

    def refuses(**_: object) -> None:
        raise UserError("no plan")

    given = ["new-study", "clinic", "--data", "mine/table.csv"]
    for planning, extra in ((refuses, []), (planned_here, ["--dry-run"])):
        monkeypatch.setattr(project_files, "dry_run", planning)
        main([*given, *extra])
        assert files_of(tmp_path) == before
    assert "--- Snakefile" in capsys.readouterr().out
    assert main(given) == 0
    assert "a new project" in capsys.readouterr().out
    files = {"Snakefile", "config/config.yaml", "config/README.md", "profiles/default/config.yaml"}
    assert files <= files_of(tmp_path)
    with pytest.raises(UserError, match="no model that can be scored"):
        read_plan()  # the study is that of the configuration
    assert main(["new-study", "second", "--data", "mine/table.csv"]) == 0
    assert "a new project" not in capsys.readouterr().out


def test_an_empty_mapping_of_data_sets_takes_the_new_one(project: Path) -> None:
    (project / "config" / "datasets.yaml").write_text("{}\n")
    table(project / "mine", "file,patient,date,split,Edema,Mass", visits())
    assert main(["new-study", "clinic", "--data", "mine/table.csv"]) == 0
    assert set(read_project().datasets) == {"clinic"}


def test_a_snakefile_of_another_workflow_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "mine", "file,patient,date,split,Edema,Mass", visits())
    (tmp_path / "Snakefile").write_text("rule mine: output: 'a'")
    before = files_of(tmp_path)
    assert main(["new-study", "clinic", "--data", "mine/table.csv"]) == 1
    assert "docs/module.md" in capsys.readouterr().err
    assert files_of(tmp_path) == before


@pytest.mark.parametrize(
    ("paths", "levels"),
    [
        (["cat/1.png", "dog/1.png"], ["class"]),
        (["train/cat/1.png", "test/cat/1.png"], ["split", "class"]),
        (["north/cat/1.png", "south/cat/1.png"], ["domain", "class"]),
        (["cat/tom/1.png", "dog/rex/1.png"], ["class", "group"]),
        (["train/cat/tom/1.png", "test/cat/kit/1.png"], ["split", "class", "group"]),
    ],
)
def test_levels_are_told_by_the_names_of_folders(
    tmp_path: Path, paths: list[str], levels: list[str]
) -> None:
    for path in paths:
        picture(tmp_path / path)
    assert guessed_levels(tmp_path)[0] == levels


@pytest.mark.parametrize(
    ("names", "pairs", "calibration", "train"),
    [
        (["train", "val", "test"], "test", "val", "train"),
        (["Train", "Test"], "Test", "Train", "Train"),
        (["train", "valid"], "valid", "train", "train"),
        (["calibration", "fold0"], "fold0", "calibration", None),
    ],
)
def test_pairs_and_calibration_images_are_of_two_splits(
    names: list[str], pairs: str, calibration: str, train: str | None
) -> None:
    import polars as pl

    found = splits_of(pl.DataFrame({"split": names * 3}), "table")
    assert (found.pairs, found.calibration, found.train) == (pairs, calibration, train)


def test_targets_have_names_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "north" / "table.csv"
    file.parent.mkdir()
    file.touch()
    assert target_key(str(file), []) == "north"
    assert target_key(str(file), ["north"]) == "north-target"
    assert target_key("data/Source", []) == "source-target"


def test_the_files_are_valid_beside_those_of_the_project(project: Path) -> None:
    text = (ROOT / "config" / "datasets.yaml").read_text()
    (project / "config" / "datasets.yaml").write_text(text)
    table(project / "mine", "file,patient,date,split,Edema,Mass", visits())
    assert main(["new-study", "clinic", "--data", "mine/table.csv"]) == 0
    new = yaml.safe_load((project / "config" / "datasets.yaml").read_text())
    assert {key: new[key] for key in yaml.safe_load(text)} == yaml.safe_load(text)
