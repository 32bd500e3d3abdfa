"""Models as a zoo's entries say."""

from __future__ import annotations

from pathlib import Path

import pytest
from configured import mistake, phantom
from project import model


def test_a_sound_configuration_gives_plain_sorted_load_blocks(files: dict) -> None:
    study = phantom(files)
    load_block = study.models["mixer"].load
    assert list(load_block) == sorted(load_block)
    assert type(load_block) is dict
    assert load_block["preprocessing"] == {"channels": 1, "interpolation": "bilinear", "size": 32}
    assert study.view("external")["domains"] == ["north", "clinic"]
    assert study.pairs.random == "different_group"


def test_labels_do_not_reach_the_load_block(files: dict) -> None:
    before = phantom(files).models["few"]
    files["zoo/small_phantom.yaml"]["few"].update(label="other", family="other", backbone="B/16")
    after = phantom(files).models["few"]
    assert before.load == after.load
    assert before.label != after.label
    assert "backbone" not in before.described
    assert after.described["backbone"] == "B/16"


def test_an_unknown_source_of_a_model_is_suggested(files: dict) -> None:
    files["zoo/small_phantom.yaml"]["few"]["load"]["source"] = "tim"
    assert "few.load: unknown source 'tim': did you mean 'timm'?" in mistake(files)


def test_an_unknown_key_of_a_load_block_is_suggested(files: dict) -> None:
    files["zoo/small_phantom.yaml"]["few"]["load"]["epocs"] = 3
    assert "few.load: unknown key 'epocs': did you mean 'epochs'?" in mistake(files)


def test_a_weights_file_that_is_not_there_is_named(files: dict) -> None:
    load_block = {
        "source": "timm",
        "name": "resnet18",
        "file": "gone.pth",
        "preprocessing": {"size": 32},
    }
    files["zoo/small_phantom.yaml"]["few"]["load"] = load_block
    assert "few.load.file: no such file 'gone.pth'" in mistake(files)


@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("https://user:secret@x.org/w.pth", "a name or a password"),
        ("https://secret@x.org/w.pth", "a name or a password"),
        ("https://x.org/w.pth?token=secret", "'token'"),
        ("https://x.org/w.pth?a=1&X-Amz-Signature=secret", "'X-Amz-Signature'"),
        ("https://x.org/w.pth?access_token=secret#x", "'access_token'"),
        ("https://x.org/w.pth?sig%6eature=secret", "'sig%6eature'"),
        ("file:///etc/secret", "http:// or https://"),
    ],
)
def test_an_address_with_a_secret_is_refused_and_not_repeated(
    files: dict, address: str, named: str
) -> None:
    own = {"source": "checkpoint", "arch": "resnet18", "url": address}
    part = {"source": "finetune", "arch": "resnet18", "initial": {"url": address}}
    for block, place in ((own, "few.load.url"), (part, "few.load.initial.url")):
        files["zoo/small_phantom.yaml"]["few"]["load"] = block
        said = mistake(files)
        assert said.startswith(f"config/zoo/small_phantom.yaml: {place}: ")
        assert named in said and "secret" not in said.replace("a secret such as", "")


@pytest.mark.parametrize("address", ["https://x.org/w.pth?download=1", "https://x.org/@me/w.pth"])
def test_an_address_without_a_secret_is_taken(files: dict, address: str) -> None:
    block = {"source": "checkpoint", "arch": "resnet18", "url": address}
    files["zoo/small_phantom.yaml"]["few"]["load"] = block
    assert phantom(files).models["few"].load["url"] == address


@pytest.mark.parametrize("field", ["label", "family", "objective", "regime", "backbone"])
@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "=cmd|' /C calc'!A0", "a\nb"])
def test_a_name_that_a_page_or_a_spreadsheet_would_run_is_refused(
    files: dict, field: str, text: str
) -> None:
    files["zoo/small_phantom.yaml"]["few"][field] = text
    said = mistake(files)
    assert said.startswith(f"config/zoo/small_phantom.yaml: few.{field}: {text!r} ")
    assert "\n" not in said


def test_a_model_key_with_a_slash_is_refused(files: dict) -> None:
    files["zoo/small_phantom.yaml"]["a/b"] = model("linear", "L")
    assert "a/b" in mistake(files)


def test_a_model_leaks_where_it_was_trained_on_a_split_of_the_pairs(files: dict) -> None:
    files["zoo/small_phantom.yaml"]["few"]["trained_on"] = ["train", "test"]
    assert phantom(files).leaks("few")
    files["zoo/small_phantom.yaml"]["few"]["trained_on"] = ["train"]
    assert not phantom(files).leaks("few")


def test_what_nobody_said_of_a_models_training_is_not_known_unless_the_workflow_trains_it(
    files: dict,
) -> None:
    zoo = files["zoo/small_phantom.yaml"]
    del zoo["few"]["trained_on"]
    assert phantom(files).trained_on["few"] == ["train"]
    files["studies/small_phantom.yaml"]["pairs"]["split"] = "train"
    assert phantom(files).leaks("few")
    Path("all.csv").write_text("")
    zoo["few"]["load"] = {"source": "logits", "file": "all.csv"}
    assert phantom(files).trained_on["few"] is None and not phantom(files).leaks("few")
    zoo["few"]["trained_on"] = []
    assert phantom(files).trained_on["few"] == [] and not phantom(files).leaks("few")


def test_precomputed_logits_are_files_of_a_view_with_their_ids(files: dict) -> None:
    for name in ("all.npy", "all.txt"):
        Path(name).write_text("")
    files["zoo/small_phantom.yaml"]["few"]["load"] = {"source": "logits", "file": "all.npy"}
    few = phantom(files).models["few"]
    assert few.precomputed and few.trainer is None
    assert few.logits_files("external") == ["all.npy", "all.txt"]
    assert few.logits_script == "precomputed_logits.py"


def test_probes_that_differ_in_their_heads_share_a_backbone(files: dict) -> None:
    files["studies/small_phantom.yaml"]["source"]["val"] = "calibration"
    zoo = files["zoo/small_phantom.yaml"]
    block = {"source": "probe", "backbone": {"timm": "resnet18.a1_in1k"}}
    zoo["few"]["load"], zoo["mixer"]["load"] = block, {**block, "penalty": [0.1, 1.0]}
    study = phantom(files)
    assert list(study.backbones) == [study.models["few"].backbone_key]
    assert study.models["mixer"].head == {"penalty": [0.1, 1.0]}
    assert set(study.models["few"].backbone_load) == {"backbone", "preprocessing"}
    assert set(study.trained_by("probe")) == {"few", "mixer"}
