"""The built wheel, installed alone: the commands, and the workflow's files that come with it."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from importing import importer
from project import ROOT, ZOOS, checkout

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has the wheel, and the tests' own other packages."""
    folder = tmp_path_factory.mktemp("installed")
    parts = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
    source = checkout(folder / "source", *parts)
    (source / "config").mkdir()
    shutil.copy2(ROOT / "config" / "README.md", source / "config")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder), "."]
    subprocess.run([*pip, *build], cwd=source, check=True)
    shutil.rmtree(source)  # nothing may be read from it later
    place = folder / "environment"
    venv.create(place, symlinks=True)
    paths = sysconfig.get_paths(vars={"base": str(place), "platbase": str(place)})
    # its own `.pth` files, such as the one that names this checkout, do not count here
    Path(paths["purelib"], "others.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    wheel = next(folder.glob("*.whl"))
    install = ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([*pip, "--python", paths["scripts"] + "/python", *install], check=True)
    return Path(paths["scripts"])


@pytest.fixture
def command(installed: Path, tmp_path: Path) -> Command:
    """Runs a program of the environment in an empty folder."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        line = [str(installed / name), *arguments]
        done = subprocess.run(line, cwd=tmp_path, env=environment, text=True, capture_output=True)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return run


def test_the_library_is_the_installed_one_and_has_all_shipped_files(
    command: Command, installed: Path
) -> None:
    code = (
        "import json, stamp; from stamp.core.shipped import ROOT;"
        "from stamp.config.labels import class_lists, label_maps;"
        "from stamp.paper.printed_tables import read;"
        "print(json.dumps([stamp.__file__, str(ROOT), len(class_lists.read('imagenet_a')),"
        "label_maps.digest('nih') is not None, len(read().tables),"
        "sorted(str(file.relative_to(ROOT)) for file in ROOT.rglob('*') if file.is_file())]))"
    )
    done = command("python", "-c", code)
    assert done.returncode == 0, done.stderr
    library, root, classes, has_map, tables, files = json.loads(done.stdout)
    environment = str(installed.parent)
    assert library.startswith(environment) and root.startswith(environment)
    assert classes == 200 and has_map and tables > 10
    for folder in ("profiles", "resources", "rules", "workflow/schemas", "workflow/report"):
        wanted = {
            str(file.relative_to(ROOT))
            for file in (ROOT / folder).rglob("*")
            if file.is_file() and "__pycache__" not in file.parts
        }
        assert wanted <= set(files), folder
    assert {"Snakefile", "workflow/scripts/score.py", "envs/stamp.yaml"} <= set(files)


def test_data_a_model_and_a_table_are_looked_at_without_a_project(
    command: Command, tmp_path: Path
) -> None:
    assert "audit-model" in command("stamp", "--help").stdout
    assert "entropy" in command("stamp", "metrics").stdout
    assert command("stamp", "example-data", "mine", "--patients", "60").returncode == 0
    table = tmp_path / "mine" / "clinic" / "table.csv"
    looked = command("stamp", "check-data", str(table))
    assert looked.returncode == 0 and "temporal" in looked.stdout, looked.stdout + looked.stderr
    with table.open() as file:
        images = [row["file"] for row in csv.DictReader(file)]
    rng = np.random.default_rng(0)
    lines = ["image,Cardiomegaly,Effusion,Pneumothorax"]
    lines += [",".join([image, *(f"{z:.4f}" for z in rng.normal(size=3))]) for image in images]
    (tmp_path / "logits.csv").write_text("\n".join(lines))
    scored = command(
        "stamp", "audit-model", "--data", str(table), "--logits", "logits.csv", "--json",
        "--resamples", "50",
    )  # fmt: skip
    assert scored.returncode == 0, scored.stderr
    assert -1 < json.loads(scored.stdout)["stamp"] < 1
    shutil.copy(ROOT / "docs" / "your-own-table.csv", tmp_path / "mine.csv")
    done = command("stamp", "statistics", "mine.csv", "--out", "results/mine")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "results" / "mine" / "statistics" / "correlations.csv").is_file()


@pytest.mark.parametrize("line", [["status"], ["add-model", "--study", "mine", "--key", "a"]])
def test_a_command_that_needs_a_project_says_so_in_one_line(
    command: Command, line: list[str]
) -> None:
    named = ["--timm", "resnet18.a1_in1k", "--family", "a", "--objective", "b", "--regime", "c"]
    done = command("stamp", *line, *(named if len(line) > 1 else []))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and " config/" in done.stderr, done.stderr


def test_an_empty_folder_becomes_a_project_whose_study_is_planned(
    command: Command, tmp_path: Path
) -> None:
    command("stamp", "example-data", "mine", "--patients", "40", "--size", "32")
    written = command("stamp", "new-study", "clinic", "--data", "mine/clinic/table.csv")
    assert written.returncode == 0, written.stderr
    assert "\n    stamp add-model --study clinic" in written.stdout
    table = (tmp_path / "mine" / "clinic" / "table.csv").read_text().splitlines()[1:]
    rows = [f"{line.split(',')[0]},{len(line)},1,-2" for line in table]
    columns = "image,Cardiomegaly,Effusion,Pneumothorax"
    (tmp_path / "outputs.csv").write_text("\n".join([columns, *rows]))
    added = command(
        "stamp", "add-model", "--study", "clinic", "--logits", "outputs.csv", "--key", "mine",
        "--family", "a", "--objective", "b", "--regime", "c",
    )  # fmt: skip
    assert added.returncode == 0, added.stderr
    planned = command("python", "-m", "snakemake", "-n", "--cores", "1")
    assert planned.returncode == 0, planned.stderr
    assert "leaderboard" in planned.stdout + planned.stderr


def test_a_project_may_be_its_configuration_and_a_module(command: Command, tmp_path: Path) -> None:
    """`status` and `add-model` plan by the installed Snakefile."""
    root = command("python", "-c", "from stamp.core.shipped import ROOT; print(ROOT)").stdout
    importer(tmp_path, "")
    own = {"studies": ["small_digits"], "seed": 3, "device": "cpu"}
    (tmp_path / "config" / "config.yaml").write_text(json.dumps(own))
    (tmp_path / "Snakefile").write_text(
        "configfile: 'config/config.yaml'\n"
        f"module stamp:\n    snakefile: '{root.strip()}/Snakefile'\n    config: config\n"
        "use rule * from stamp\n"
    )
    told = command("stamp", "status")
    assert told.returncode == 0 and told.stdout.count("missing") >= 2, told.stdout + told.stderr
    (tmp_path / "logits.csv").write_text("image,0,1,2,3,4,5,6,7,8,9\na" + ",1" * 10)
    added = command(
        "stamp", "add-model", "--study", "small_digits", "--key", "mine", "--logits", "logits.csv",
        "--family", "a", "--objective", "b", "--regime", "c", "--dry-run",
    )  # fmt: skip
    assert added.returncode == 0, added.stderr
    assert "mine: logits 3, calibrate 1, score 1" in added.stdout


def test_every_decoder_that_an_error_asks_for_is_in_an_extra_unless_it_is_gpl() -> None:
    from stamp.images import dicom

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {one.partition(">")[0] for one in extras["optional-dependencies"]["dicom"]}
    asked = {name for names in dicom.DECODERS.values() for name in names.split()}
    assert asked - {"pylibjpeg-libjpeg"} <= named
    assert "pylibjpeg-libjpeg" not in named  # GPL: a user's own decision


def test_another_workflow_imports_ours_from_a_git_host(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snakemake clones from the host as ever; Git is told to find this host on the disk."""
    repository = checkout(tmp_path / "hosts" / "someone" / "stamp")

    def git(*arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *who, *arguments], cwd=repository, check=True, capture_output=True)

    git("init", "--initial-branch", "main")
    git("add", "--all")
    git("commit", "--message", "first")
    git("tag", "v1")
    (repository / "rules" / "score.smk").open("a").write("\n\n# later\n")
    git("commit", "--all", "--message", "second")
    git("tag", "v2")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.file://{tmp_path}/hosts/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://github.com/")

    def run(folder: str, tag: str) -> subprocess.CompletedProcess[str]:
        place = f'github("someone/stamp", path="Snakefile", tag="{tag}")'
        mine = importer(tmp_path / folder, place)
        line = [str(installed / "python"), "-m", "snakemake", "--cores", "2"]
        return subprocess.run(
            line, cwd=mine.folder, env=mine.environment(), text=True, capture_output=True
        )

    done = run("mine", "v1")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "mine" / "best.txt").read_text().strip() in ZOOS["small_digits"]
    other = run("other", "v2")
    assert other.returncode and "score.smk" in other.stdout + other.stderr
    assert "of that version" in other.stdout + other.stderr
