"""The card of one model, and one line for each mistake on the way to it."""

from __future__ import annotations

import hashlib
import json
import shlex
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
import yaml

import stamp
from stamp.__main__ import main
from stamp.cli.audit_model import standing
from stamp.cli.example_data.clinic import LABELED, write_clinic
from stamp.cli.example_data.shapes import write_shapes
from stamp.cli.one_model import Audit
from stamp.core.artifacts import write_arrays, write_table
from stamp.core.errors import UserError
from stamp.models.loaders.train import network
from stamp.models.weights import write_weights

BLOCK = {"source": "train", "arch": "linear", "preprocessing": {"size": 16, "channels": 1}}


def weights(file: Path, classes: int, constant: bool = False) -> None:
    """A linear network with fixed random weights, or with none."""
    torch.manual_seed(3)
    module = network(BLOCK, [str(number) for number in range(classes)]).module
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(0.0 if constant else 3.0)
    write_weights(module, file, {"model": "x"})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_clinic(tmp_path / "clinic", patients=40, size=32, seed=0)
    write_shapes(tmp_path / "shapes", 12, size=32, seed=0)
    weights(tmp_path / "w.safetensors", 3)
    weights(tmp_path / "flat.safetensors", 3, constant=True)
    (tmp_path / "block.yaml").write_text(yaml.safe_dump(BLOCK))
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *more: str, data: str = "clinic/table.csv") -> str:
    """What the command prints, and that it wrote nothing."""
    before = sorted(Path(".").rglob("*"))
    given = ["--load", "block.yaml", "--resamples", "100", "--data", data]
    files = [] if "--file" in more else ["--file", "w.safetensors"]
    assert main(["audit-model", *given, *files, *more]) == 0
    assert sorted(Path(".").rglob("*")) == before
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["audit-model", *arguments]) == 1
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert line.startswith("stamp: ")
    return line.removeprefix("stamp: ")


def test_the_score_on_the_card_is_the_formulas(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SV by hand: pixels resized by Pillow, a matrix product, sigmoids, a loop over pairs."""
    from PIL import Image
    from safetensors.numpy import load_file

    from stamp.images.reading import open_image

    found = json.loads(said(capsys, "--json", "--pairs", "12"))
    assert found["n_semantic"] == 12 and found["n_random"] > 12
    assert found["estimator"] == "exact" and found["sampled_stamp"] != found["stamp"]
    assert found["stamp"] == pytest.approx(1 - found["within"] / (found["total"] + 1e-8))
    table = pl.read_csv("clinic/table.csv").filter(pl.col("split") == "test")
    state = load_file("w.safetensors")
    outputs = {}
    for file in table["file"]:
        picture = open_image(Path("clinic") / file, 1).resize((16, 16), Image.Resampling.BILINEAR)
        pixels = (np.asarray(picture, dtype=np.float64).ravel() / 255 - 0.5) / 0.25
        logits = state["head.weight"].astype(np.float64) @ pixels + state["head.bias"]
        outputs[file] = 1 / (1 + np.exp(-logits))
    every = json.loads(said(capsys, "--json"))
    rows = sorted(table.iter_rows(named=True), key=lambda row: (row["patient"], row["date"]))
    distances = [
        ((outputs[a["file"]] - outputs[b["file"]]) ** 2).sum()
        for a, b in pairwise(rows)
        if a["patient"] == b["patient"]
    ]
    assert every["n_semantic"] == len(distances)
    assert every["within"] == pytest.approx(np.mean(distances), rel=1e-4)


def test_a_card_fits_the_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    lines = said(capsys, "--pairs", "12").splitlines()
    copied = [line for line in lines if line.startswith(("Weights", "Repeat by"))]
    assert max(len(line) for line in lines if line not in copied) <= 72


def by_hand(folder: Path) -> pl.DataFrame:
    """The linear network's logits of every picture of the clinic, by a matrix product."""
    from PIL import Image
    from safetensors.numpy import load_file

    from stamp.images.reading import open_image

    state, rows = load_file(folder / "w.safetensors"), []
    for file in pl.read_csv(folder / "clinic/table.csv")["file"]:
        picture = open_image(folder / "clinic" / file, 1)
        small = np.asarray(picture.resize((16, 16), Image.Resampling.BILINEAR), dtype=np.float64)
        pixels = (small.ravel() / 255 - 0.5) / 0.25
        logits = state["head.weight"].astype(np.float64) @ pixels + state["head.bias"]
        rows.append({"image": file, **dict(zip(LABELED, logits, strict=True))})
    return pl.DataFrame(rows)


@pytest.mark.parametrize("probabilities", [False, True])
def test_a_file_of_outputs_has_the_card_of_the_model_that_gave_them(
    folder: Path, capsys: pytest.CaptureFixture[str], probabilities: bool
) -> None:
    outputs = by_hand(folder)
    if probabilities:
        outputs = outputs.with_columns(
            (1 / (1 + (-pl.col(name)).exp())).alias(name) for name in LABELED
        )
    outputs.write_csv(folder / "outputs.csv")
    own = json.loads(said(capsys, "--json"))
    given = ["--logits", "outputs.csv", *(["--probabilities"] if probabilities else [])]
    rest = ["--data", "clinic/table.csv", "--resamples", "100", "--json"]
    assert main(["audit-model", *given, *rest]) == 0
    found = json.loads(capsys.readouterr().out)
    for part in ("stamp", "within", "total", "low", "high"):
        assert found[part] == pytest.approx(own[part], rel=1e-4), part
    outputs.head(3).write_csv(folder / "few.csv")
    line = refused(capsys, "--logits", "few.csv", *given[2:], *rest[:2])
    assert "images of the view 'source' are missing" in line
    line = refused(capsys, "--logits", "gone.csv", *rest[:2])
    assert line == "no such file 'gone.csv'"


def test_code_of_a_user_is_not_run_unless_the_configuration_allows_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    block = {"source": "python", "function": "mine:make", "mean": [0.5], "std": [0.25]}
    (folder / "mine.py").write_text("raise SystemExit('was imported')\n")
    (folder / "code.yaml").write_text(
        yaml.safe_dump({**block, "preprocessing": BLOCK["preprocessing"]})
    )
    line = refused(capsys, "--load", "code.yaml", "--data", "clinic/table.csv")
    assert "allow_code: true" in line


def test_a_folder_a_class_is_scored_by_class_pairs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(said(capsys, "--json", data="shapes"))
    assert (found["task"], found["semantic"]) == ("multiclass", "class")
    assert found["source_metric"]["metric"] == "top1"
    text = said(capsys, "--scale", data="shapes")
    assert "of the variance of its outputs lies between classes" in " ".join(text.split())
    assert "fitted, used" in text


def test_patients_with_visits_are_scored_by_visits_and_class_pairs_are_by_label(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A multiclass table with patients: class pairs are not pairs of one patient."""
    weights(folder / "two.safetensors", 2)
    table = pl.read_csv("clinic/table.csv").with_columns(
        label=pl.when(pl.col("Effusion") == 1).then(pl.lit("effusion")).otherwise(pl.lit("none"))
    )
    table.select("file", "patient", "date", "split", "label").write_csv("clinic/multi.csv")
    multi: dict[str, Any] = {"data": "clinic/multi.csv"}
    file = ["--file", "two.safetensors"]
    visits = json.loads(said(capsys, "--json", *file, **multi))
    assert (visits["task"], visits["semantic"]) == ("multiclass", "temporal")
    text = " ".join(said(capsys, "--semantic", "class", *file, **multi).split())
    assert "class and" in text and "lies between classes" in text
    assert "by the exact estimator; sampled: " in text
    found = json.loads(said(capsys, "--json", "--semantic", "class", *file, **multi))
    test = table.filter(pl.col("split") == "test")
    ends = list(combinations(test.select("label", "patient").rows(), 2))
    same = [(a, b) for a, b in ends if a[0] == b[0] and a[1] != b[1]]
    assert found["n_semantic"] == len(same)
    assert found["n_units"] == test["patient"].n_unique()  # patients are resampled
    assert f"images of {test['patient'].n_unique()} groups (patients or the like)" in text
    text = " ".join(said(capsys, data="shapes").split())
    assert "images, split test" in text  # groups that are the classes are no patients


def test_a_score_of_some_of_the_eligible_pairs_says_of_how_many(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exact is over all drawn visits: the card says so where more could have been drawn."""
    test = pl.read_csv("clinic/table.csv").filter(split="test")
    visits = len(test) - test["patient"].n_unique()
    some = json.loads(said(capsys, "--json", "--pairs", "9"))
    assert (some["n_semantic"], some["eligible"]) == (9, visits)
    assert f"9 of {visits} eligible temporal" in " ".join(said(capsys, "--pairs", "9").split())
    assert "eligible" not in said(capsys)


def test_a_constant_model_has_no_score_and_the_card_says_why(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = said(capsys, "--file", "flat.safetensors")
    assert "STAMP       none; the formula gives 1.000" in text
    assert "degenerate" in text
    assert "A constant model would get the best value of all." in " ".join(text.split())


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "nothing to score on: give --data or --study"),
        (["--data", "clinic/table.csv"], "one model is scored: give one of --load, --timm"),
        (
            ["--data", "clinic/table.csv", "--onnx", "no.onnx", "--mean", "0", "--std", "1"],
            "no.onnx: no such file",
        ),
        (["--data", "clinic/table.csv", "--torchscript", "x.pt"], "--torchscript needs --mean"),
        (
            ["--data", "clinic/table.csv", "--torchscript", "x.pt", "--mean", "0", "--std", "1"],
            "--torchscript needs --size",
        ),
        (
            ["--data", "clinic/table.csv", "--torchscript", "x.pt", "--mean", "0", "--std", "1",
             "--size", "9"],
            "model 'x': no such file 'x.pt'",
        ),
        (["--data", "clinic/table.csv", "--checkpoint", "x.st"], "--checkpoint needs --arch"),
        (
            ["--data", "clinic/table.csv", "--load", "block.yaml"],
            "model 'block' is one that the workflow trains: give its weights by --file",
        ),
        (
            ["--data", "clinic/table.csv", "--load", "block.yaml", "--file", "none.safetensors"],
            "model 'block': no such file 'none.safetensors'",
        ),
        (["--data", "clinic/table.csv", "--timm", "resnet18"], "--timm needs --size"),
        (
            ["--data", "clinic/table.csv", "--load", "zoo.yaml", "--model", "b"],
            "zoo.yaml: unknown model 'b': known: aa, cc",
        ),
        (["--data", "clinic/table.csv", "--load", "zoo.yaml"], "zoo.yaml: has several models"),
        (
            ["--data", "clinic/table.csv", "--load", "zoo.yaml", "--model", "cc"],
            "zoo.yaml: cc: load: unknown source 'tim': did you mean 'timm'?",
        ),
        (
            ["--data", "clinic/table.csv", "--load", "block.yaml", "--file", "w.safetensors",
             "--classes", "Cardiomegaly,Efusion,Pneumothorax"],
            "no label column 'Efusion': did you mean 'Effusion'?",
        ),
        (
            ["--data", "clinic/table.csv", "--load", "block.yaml", "--file", "w.safetensors",
             "--split", "tset"],
            "unknown split 'tset': did you mean 'test'?",
        ),
        (
            ["--data", "clinic/table.csv", "--load", "block.yaml", "--file", "w.safetensors",
             "--pairs", "9999"],
            "temporal pairs are eligible, 9999 asked",
        ),
        (
            ["--study", "x", "--data", "clinic/table.csv"],
            "--data has no use beside --study x: leave it out",
        ),
        (["--study", "x", "--calibration-count", "9"], "--calibration-count has no use beside"),
        (["--study", "x", "--scale"], "--scale has no use beside --study x"),
        (
            ["--data", "clinic/table.csv", "--logits", "o.csv", "--size", "9"],
            "--size has no use beside --logits",
        ),
        (
            ["--data", "clinic/table.csv", "--load", "block.yaml", "--no-probabilities"],
            "--probabilities has no use beside --load",
        ),
        (
            ["--data", "clinic/table.csv", "--logits", "o.csv", "--classes", "Mass,Edema,Mass"],
            "--classes names 'Mass' twice",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    entry = {"load": BLOCK, "label": "x", "family": "x", "objective": "x", "regime": "x"}
    zoo = {"aa": entry, "cc": {**entry, "load": {"source": "tim"}}}
    (folder / "zoo.yaml").write_text(yaml.safe_dump(zoo))
    assert line in refused(capsys, *arguments)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("--pairs", "0"),
        ("--pairs", "-3"),
        ("--pairs", "many"),
        ("--resamples", "0"),
        ("--calibration-count", "-1"),
        ("--seed", "-1"),
        ("--threads", "0"),
        ("--size", "0"),
    ],
)
def test_a_number_out_of_range_is_refused_before_any_work(
    capsys: pytest.CaptureFixture[str], argument: str, value: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["audit-model", "--data", "no-such-table.csv", argument, value])
    assert caught.value.code == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert f"error: argument {argument}: '{value}' " in said


def outputs_of(table: Path, seed: int = 0) -> tuple[pl.DataFrame, np.ndarray]:
    """A table's image ids, and logits drawn for them."""
    ids = pl.read_csv(table)["file"].alias("image")
    return ids.to_frame(), np.random.default_rng(seed).normal(size=(len(ids), len(LABELED)))


def write_given(file: Path, ids: pl.DataFrame, values: np.ndarray) -> None:
    ids.with_columns(
        pl.Series(name, values[:, place]) for place, name in enumerate(LABELED)
    ).write_csv(file)


def test_the_card_of_a_file_of_outputs_does_without_parameters(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The README's own line: nobody knows how many parameters a file of outputs has."""
    write_given(Path("outputs.csv"), *outputs_of(Path("clinic/table.csv")))
    given = ["--data", "clinic/table.csv", "--logits", "outputs.csv", "--resamples", "50"]
    assert main(["audit-model", *given]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Model       outputs\nData        clinic/table.csv: ")
    assert "parameters" not in text


def test_probabilities_are_never_taken_for_logits(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids, logits = outputs_of(Path("clinic/table.csv"))
    write_given(Path("logits.csv"), ids, logits)
    write_given(Path("p.csv"), ids, 1 / (1 + np.exp(-logits)))
    data = ["--data", "clinic/table.csv", "--resamples", "50", "--json"]
    assert "look like probabilities" in refused(capsys, *data, "--logits", "p.csv")
    scores = []
    for more in (["logits.csv"], ["p.csv", "--probabilities"], ["p.csv", "--no-probabilities"]):
        assert main(["audit-model", *data, "--logits", *more]) == 0
        scores.append(json.loads(capsys.readouterr().out)["stamp"])
    assert scores[1] == pytest.approx(scores[0], abs=1e-9)
    assert abs(scores[2] - scores[0]) > 1e-4  # whoever insists gets a second sigmoid


def test_a_label_that_is_no_number_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pl.read_csv("clinic/table.csv", infer_schema=False)
    first = table["file"][0]
    typo = pl.when(pl.col("file") == first).then(pl.lit("O")).otherwise("Effusion")
    table.with_columns(Effusion=typo).write_csv("clinic/typo.csv")
    more = ["--classes", ",".join(LABELED), "--load", "block.yaml", "--file", "w.safetensors"]
    line = refused(capsys, "--data", "clinic/typo.csv", *more)
    assert "column 'Effusion' is 0 or 1 but for 'O' in 1 rows, first row 2" in line


def test_a_place_that_can_not_be_written_to_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The system's own word for it, of every command that writes."""
    write_given(Path("o.csv"), *outputs_of(Path("clinic/table.csv")))
    data = ["--data", "clinic/table.csv", "--logits", "o.csv", "--resamples", "20"]
    line = refused(capsys, *data, "--out", "o.csv/card.json")
    assert line.startswith("o.csv/card.json: can't be written: ")
    assert main(["example-data", "o.csv/new"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("stamp: o.csv/new/clinic/images: Not a directory\n")


def test_a_timm_network_with_a_file_needs_no_yaml(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from safetensors.torch import save_file

    from stamp.models.torchvision_ops import timm

    torch.manual_seed(0)
    made = timm.create_model("test_resnet", num_classes=3, in_chans=1)
    save_file(made.state_dict(), "t.safetensors")
    model = ["--timm", "test_resnet", "--file", "t.safetensors", "--size", "48", "--channels", "1"]
    data = ["--data", "clinic/table.csv", "--task", "multilabel", "--classes", ",".join(LABELED)]
    assert main(["audit-model", *data, *model, "--resamples", "100", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["model"] == "test_resnet"
    assert found["parameters"] == sum(one.numel() for one in made.parameters())


def test_a_model_in_a_file_needs_no_yaml(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One network as weights, TorchScript and ONNX has one card; ONNX knows its own size."""
    from networks import ARCH, ARGS, network, write_onnx, write_torchscript

    module = network(len(LABELED), 32)
    write_weights(module, Path("n.safetensors"), {})
    write_torchscript(module, Path("n.pt"), 32)
    write_onnx(module, Path("n.onnx"), 32)
    scores = []
    for model in (
        ["--checkpoint", "n.safetensors", "--arch", ARCH, "--arch-args", str(ARGS), "--size", "32"],
        ["--torchscript", "n.pt", "--size", "32"],
        ["--onnx", "n.onnx"],
    ):
        given = ["--data", "clinic/table.csv", *model, "--mean", "0.45", "--std", "0.27"]
        assert main(["audit-model", *given, "--resamples", "50", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["model"], found["n_semantic"] > 10) == ("n", True)
        scores.append(found["stamp"])
    assert scores == pytest.approx([scores[0]] * 3, abs=1e-5)
    given = ["--onnx", "n.onnx", "--size", "48", "--mean", "0.45", "--std", "0.27"]
    line = refused(capsys, "--data", "clinic/table.csv", *given)
    assert "its input is ['batch', 1, 32, 32], but pixels are [n, 1, 48, 48]" in line


def card_of(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    """The card of the outputs in ``o.csv``, made up unless a test has written others."""
    if not Path("o.csv").is_file():
        write_given(Path("o.csv"), *outputs_of(Path("clinic/table.csv")))
    data = [] if "--data" in more else ["--data", "clinic/table.csv"]
    assert (
        main(["audit-model", *data, "--logits", "o.csv", "--resamples", "20", "--json", *more]) == 0
    )
    return json.loads(capsys.readouterr().out)


def names(card: dict[str, Any]) -> set[str]:
    return {one["name"] for one in card["raised"]}


def test_a_model_on_its_own_training_patients_is_flagged(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By split, by a list of patients or images, by a column; where nobody said, it says so."""
    table = pl.read_csv("clinic/table.csv")
    several = pl.col("split").eq("test") & (pl.len().over("patient") > 1)
    patients = table.filter(several)["patient"].unique(maintain_order=True)
    Path("patients.txt").write_text("\n".join([*patients[:3], "somebody else"]) + "\n")
    first = table.filter(pl.col("patient") == patients[0]).head(1)
    first.select("file").write_csv("images.csv")
    Path("others.txt").write_text("\n".join(table.filter(split="train")["patient"].unique()))
    seen = pl.col("patient").is_in(patients[:2].implode()).cast(pl.Int8)
    table.with_columns(used=seen).write_csv("clinic/marked.csv")
    said = card_of(capsys)
    assert said["trained_on"] is None and names(said) & {"leakage", "training_unknown"} == {
        "training_unknown"
    }
    assert any("seen these images" in one for one in said["not_tested"])
    for arguments, number in (
        (["--trained-on", "train", "test"], len(patients)),
        (["--trained-on-list", "patients.txt"], 3),
        (["--trained-on-list", "images.csv"], 1),
        (["--trained-on-column", "used", "--data", "clinic/marked.csv"], 2),
    ):
        found = card_of(capsys, *arguments)
        assert names(found) & {"leakage", "training_unknown"} == {"leakage"}, arguments
        assert f"{number} of the {len(patients)} groups" in found["trained_on"]
        assert found["groups"] == len(patients) and found["classes"] == list(LABELED)
    for arguments in (
        ["--trained-on", "train"],
        ["--trained-on"],
        ["--trained-on-list", "others.txt"],
    ):
        found = card_of(capsys, *arguments)
        assert not names(found) & {"leakage", "training_unknown"}, arguments
        assert found["trained_on"]
    assert card_of(capsys, "--trained-on")["trained_on"] == "none of the source's splits"


def test_a_patient_met_in_training_leaks_into_class_pairs_of_other_images_too(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where groups are patients they count, where they are the classes images do."""
    table = pl.read_csv("clinic/table.csv")
    test = pl.col("split") == "test"
    first = pl.int_range(pl.len()).over("patient") == 0
    # the first image of every patient of the test split is one of the training split
    split = pl.when(test & first).then(pl.lit("seen")).otherwise(pl.col("split"))
    table.with_columns(split=split).write_csv("clinic/apart.csv")
    by_class = ("--data", "clinic/apart.csv", "--semantic", "class")
    found = card_of(capsys, *by_class, "--trained-on", "seen")
    assert "leakage" in names(found)
    assert "of the" in found["trained_on"] and "groups behind the score" in found["trained_on"]
    assert "leakage" not in names(card_of(capsys, *by_class, "--trained-on", "train"))
    shapes = json.loads(said(capsys, "--json", "--trained-on", "calibration", data="shapes"))
    assert "leakage" not in names(shapes)


def test_what_a_zoo_says_of_a_models_training_is_on_the_card(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_given(Path("o.csv"), *outputs_of(Path("clinic/table.csv")))
    entry = {"load": {"source": "logits", "file": "o.csv"}}
    zoo = {"aa": {**entry, "trained_on": ["test"]}, "bb": {**entry, "trained_on": []}, "cc": entry}
    Path("zoo.yaml").write_text(yaml.safe_dump(zoo))
    found = {}
    for key in zoo:
        data = ["--data", "clinic/table.csv", "--resamples", "20", "--json"]
        assert main(["audit-model", *data, "--load", "zoo.yaml", "--model", key]) == 0
        found[key] = names(json.loads(capsys.readouterr().out)) & {"leakage", "training_unknown"}
    assert found == {"aa": {"leakage"}, "bb": set(), "cc": {"training_unknown"}}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--trained-on-list", "gone.txt"], "no such file 'gone.txt'"),
        (["--trained-on-list", "empty.txt"], "empty.txt: names no image and no group"),
        (["--trained-on-list", "o.csv", "--trained-on-column", "x"], "exclude each other"),
        (["--trained-on-column", "usd"], "no column 'usd'"),
        (["--model", "=1+2"], "--model: '=1+2' begins with '='"),
        (["--trained-on-list", "nameless.csv"], "none of the columns image, path, file"),
    ],
)
def test_a_mistake_in_its_name_or_in_what_it_was_trained_on_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    Path("empty.txt").write_text("\n")
    Path("nameless.csv").write_text("who\np1\n")
    write_given(Path("o.csv"), *outputs_of(Path("clinic/table.csv")))
    assert line in refused(capsys, "--data", "clinic/table.csv", "--logits", "o.csv", *arguments)


def test_a_misspelt_split_is_noted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_given(Path("o.csv"), *outputs_of(Path("clinic/table.csv")))
    data = ["--data", "clinic/table.csv", "--logits", "o.csv", "--resamples", "20"]
    assert main(["audit-model", *data, "--trained-on", "tset"]) == 0
    assert "no split 'tset': did you mean 'test'?" in capsys.readouterr().err


def imbalanced(right: float) -> None:
    """A table of 606 images in 1,000 of one class, and outputs of this accuracy by another rule."""
    rng = np.random.default_rng(1)
    label = np.repeat(["healthy", "ill", "worse"], [606, 300, 94])
    n = len(label)
    table = pl.DataFrame(
        {
            "image": [f"{k}.png" for k in range(n)],
            "label": label,
            "split": np.where(rng.random(n) < 0.3, "calibration", "test"),
        }
    )
    table.write_csv("table.csv")
    truth = np.unique(label, return_inverse=True)[1]
    said = np.where(rng.random(n) < right, truth, (truth + rng.integers(1, 3, n)) % 3)
    z = np.eye(3)[said] * 2 + rng.normal(size=(n, 3)) * 0.3
    columns = {name: z[:, at] for at, name in enumerate(["healthy", "ill", "worse"])}
    pl.DataFrame({"image": table["image"], **columns}).write_csv("o.csv")


@pytest.mark.parametrize(("right", "flagged"), [(0.439, True), (0.60, True), (0.75, False)])
def test_a_model_no_better_than_the_most_frequent_class_is_flagged(
    folder: Path, capsys: pytest.CaptureFixture[str], right: float, flagged: bool
) -> None:
    imbalanced(right)
    found = card_of(capsys, "--data", "table.csv")
    metric = found["source_metric"]
    rows = pl.read_csv("table.csv").filter(split="test")
    share = (rows["label"] == "healthy").mean()  # of all images: a few are in no pair
    assert metric["no_skill"] == pytest.approx(share, abs=0.02)
    assert metric["low"] < metric["value"] < metric["high"]
    assert ("no_skill" in names(found)) == flagged
    assert (
        main(["audit-model", "--data", "table.csv", "--logits", "o.csv", "--resamples", "9"]) == 0
    )
    text = capsys.readouterr().out
    assert f"majority-class rate {metric['no_skill']:.3f}" in " ".join(text.split())
    assert ("no better than the majority class" in text) == flagged


def test_one_hot_outputs_and_a_temperature_at_its_bound_are_explained(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imbalanced(0.75)
    outputs = pl.read_csv("o.csv")
    values = outputs.drop("image").to_numpy()
    hard = (values == values.max(axis=1, keepdims=True)).astype(int)
    columns = {name: hard[:, at] for at, name in enumerate(outputs.columns[1:])}
    pl.DataFrame({"image": outputs["image"], **columns}).write_csv("o.csv")
    found = card_of(capsys, "--data", "table.csv", "--probabilities", "--scale")
    assert {"hard", "temperature_bound"} <= names(found) and "saturated" in found["flags"]
    (bound,) = [one for one in found["raised"] if one["name"] == "temperature_bound"]
    assert found["temperature"] == pytest.approx(20, rel=0.01)
    assert "softened" in bound["reason"] and "logits" in bound["advice"]


def test_one_unknown_label_is_refused_not_dropped(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pl.read_csv("clinic/table.csv", infer_schema=False)
    unknown = pl.when(pl.int_range(pl.len()) == 3).then(pl.lit("NA")).otherwise("Effusion")
    table.with_columns(Effusion=unknown).write_csv("clinic/na.csv")
    write_given(Path("o.csv"), *outputs_of(Path("clinic/table.csv")))
    line = refused(capsys, "--data", "clinic/na.csv", "--logits", "o.csv")
    assert "column 'Effusion'" in line and "'NA'" in line and "row 5" in line
    whole = card_of(capsys)
    assert whole["classes"] == list(LABELED)
    graded = pl.when(pl.int_range(pl.len()) == 3).then(pl.lit("2")).otherwise("Effusion")
    table.with_columns(Effusion=graded).write_csv("clinic/graded.csv")
    data = ["--data", "clinic/graded.csv", "--logits", "o.csv", "--resamples", "9"]
    assert main(["audit-model", *data]) == 0
    said = capsys.readouterr()
    assert "the column 'Effusion' is 0 or 1" in said.err and "not read as a class" in said.err
    assert "Classes     2: Cardiomegaly, Pneumothorax" in said.out


def test_the_card_says_what_is_behind_it_and_how_to_repeat_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = card_of(capsys, "--trained-on", "train")
    rows = pl.read_csv("clinic/table.csv").filter(split="test")
    several = rows.group_by("patient").len().filter(pl.col("len") > 1)
    assert found["groups"] == len(several)
    assert found["images"] == int(several["len"].sum())
    assert found["weights"]["sha256"] == hashlib.sha256(Path("o.csv").read_bytes()).hexdigest()
    assert found["versions"]["stamp"] == stamp.__version__
    assert len(found["not_tested"]) >= 3
    line = shlex.split(found["command"])
    assert line[:3] == ["python", "-m", "stamp"]
    assert main(line[3:]) == 0
    assert json.loads(capsys.readouterr().out) == found
    text = said(capsys)
    assert f"{found['groups']} groups (patients or the like)" in " ".join(text.split())
    for word in ("Not tested", "Versions", "torch", "Weights", "sha256", "Repeat by"):
        assert word in text


def audited(stamp: float | None, low: float, high: float, draws: np.ndarray) -> Audit:
    row: dict[str, Any] = {"stamp": stamp, "low": low, "high": high}
    pairs = pl.DataFrame({"a": ["x"], "b": ["y"], "kind": ["temporal"]})
    return Audit(row, pl.DataFrame(), pl.DataFrame(), pairs, draws, seed=0)


def test_the_standing_counts_placed_models_and_leaves_the_model_itself_out(tmp_path: Path) -> None:
    board = pl.DataFrame(
        {
            "model": ["a", "b", "me", "c", "apart"],
            "place": [1, 2, 3, 4, None],
            "stamp": [0.9, 0.6, 0.5, 0.2, 0.99],
        }
    )
    board.write_csv(tmp_path / "leaderboard.csv")
    found = standing.standing(
        audited(0.5, 0.1, 0.7, np.zeros(4)), "me", 0.95, tmp_path / "leaderboard.csv"
    )
    assert found == standing.Standing(place=3, low=2, high=4, models=3, below=1 / 3, joint=False)
    none = standing.standing(
        audited(None, 0.1, 0.7, np.zeros(4)), "me", 0.95, tmp_path / "leaderboard.csv"
    )
    assert none is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("place,model,stamp\n1,x,good\n", "a place or stamp is no number"),
        ("place,models,stamp\n1,x,0.5\n", "no column 'model': did you mean 'models'?"),
        ("", "can't be read as a leaderboard"),
    ],
)
def test_a_leaderboard_that_is_none_is_one_line_before_any_work(
    tmp_path: Path, text: str, line: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board = tmp_path / "board.csv"
    board.write_text(text)
    data = ["--data", "clinic/table.csv", "--load", "block.yaml", "--file", "w.safetensors"]
    assert main(["audit-model", *data, "--among", str(board)]) == 1
    assert capsys.readouterr().err == f"stamp: {board}: {line}\n"  # and no bar of pixels


def test_a_leaderboard_by_another_estimator_is_refused(tmp_path: Path) -> None:
    board = tmp_path / "board.csv"
    board.write_text("place,model,stamp,estimator\n1,x,0.9,sampled\n")
    mine = audited(0.5, 0.4, 0.6, np.zeros(3))
    mine.row["estimator"] = "exact"
    with pytest.raises(UserError, match="its scores are by the sampled estimator"):
        standing.standing(mine, "me", 0.95, board)


def test_models_that_are_called_by_numbers_stand_among_others(tmp_path: Path) -> None:
    board = tmp_path / "board.csv"
    board.write_text("place,model,stamp\n1,007,0.9\n2,8,0.1\n,9,\n")
    found = standing.standing(audited(0.5, 0.4, 0.6, np.zeros(3)), "007", 0.95, board)
    assert found is not None and (found.place, found.models) == (1, 1)


def test_on_the_same_pairs_the_standing_is_of_joint_draws(tmp_path: Path) -> None:
    """Two models whose draws move together never change places, though their intervals overlap."""
    draws = np.random.default_rng(0).normal(0.5, 0.1, 1000)
    mine = audited(0.5, 0.3, 0.7, draws)
    board = pl.DataFrame({"model": ["a"], "place": [1], "stamp": [0.51]})
    board.write_csv(tmp_path / "leaderboard.csv")
    write_arrays(tmp_path / "scores" / "a.draws.safetensors", {"stamp": draws + 0.01}, {})
    fixed = standing.standing(mine, "me", 0.95, tmp_path / "leaderboard.csv")
    assert fixed is not None and (fixed.low, fixed.high, fixed.joint) == (1, 2, False)
    write_table(tmp_path / "pairs.parquet", mine.pairs, {})
    joint = standing.standing(mine, "me", 0.95, tmp_path / "leaderboard.csv")
    assert joint is not None and (joint.low, joint.high, joint.joint) == (2, 2, True)
