"""A mistake in a configuration file is one line: the file, the key and what is right."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from project import DATASETS, DIGITS, PHANTOM, ROOT, ZOOS, model

from stamp.config import analyses, documents
from stamp.config import plan as config
from stamp.config.analyses import Analysis
from stamp.config.extra_outputs import KINDS, OF_TARGETS
from stamp.config.study import Study
from stamp.config.study_file import ExtraOutputSettings
from stamp.core.errors import UserError, suggest

CONFIG = {"studies": ["small_phantom"], "seed": 0}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The documents of a configuration; :func:`load` writes them and reads them back."""
    monkeypatch.chdir(tmp_path)
    texts = {"title": "t", "licence": "none", "citation": "none"}
    documents = {
        "datasets.yaml": {key: {**texts, **each} for key, each in DATASETS.items()},
        "studies/small_phantom.yaml": PHANTOM,
        "studies/small_digits.yaml": DIGITS,
        "zoo/small_phantom.yaml": ZOOS["small_phantom"],
        "zoo/small_digits.yaml": ZOOS["small_digits"],
    }
    return copy.deepcopy(documents)


def load(files: dict[str, Any], **changes: Any) -> config.Plan:
    for name, document in files.items():
        path = Path("config") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return config.load({**CONFIG, **changes})


def mistake(files: dict[str, Any], **changes: Any) -> str:
    with pytest.raises(UserError) as caught:
        load(files, **changes)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_sound_configuration_gives_plain_sorted_load_blocks(files: dict) -> None:
    study = load(files).studies["small_phantom"]
    load_block = study.models["mixer"].load
    assert list(load_block) == sorted(load_block)
    assert type(load_block) is dict
    assert load_block["preprocessing"] == {"channels": 1, "interpolation": "bilinear", "size": 32}
    assert study.view("external")["domains"] == ["north", "clinic"]
    assert study.pairs.random == "different_group"


def test_labels_do_not_reach_the_load_block(files: dict) -> None:
    before = load(files).studies["small_phantom"].models["few"]
    files["zoo/small_phantom.yaml"]["few"].update(label="other", family="other", backbone="B/16")
    after = load(files).studies["small_phantom"].models["few"]
    assert before.load == after.load
    assert before.label != after.label
    assert "backbone" not in before.described
    assert after.described["backbone"] == "B/16"


def test_an_unknown_study_is_suggested(files: dict) -> None:
    line = mistake(files, studies=["small_phantm"])
    assert "unknown study 'small_phantm'" in line
    assert "did you mean 'small_phantom'?" in line


def test_an_unknown_key_of_the_configuration_is_suggested(files: dict) -> None:
    line = mistake(files, devise="cpu")
    assert line == "config/config.yaml: unknown key 'devise': did you mean 'device'?"


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [
        ("studies/small_phantom.yaml", {"pears": {}}, "unknown key 'pears': did you mean 'pairs'?"),
        ("studies/small_phantom.yaml", {"task": "multilable"}, "did you mean 'multilabel'?"),
        ("studies/small_phantom.yaml", {"zoo": ["small_fantom"]}, "did you mean 'small_phantom'?"),
        (
            "studies/small_phantom.yaml",
            {"models": ["mixr"]},
            "unknown model 'mixr': did you mean 'mixer'?",
        ),
        ("studies/small_phantom.yaml", {"source": {"dataset": "mnits"}}, "did you mean 'mnist'?"),
    ],
)
def test_a_mistyped_name_in_a_study_is_suggested(
    files: dict, file: str, change: dict, words: str
) -> None:
    files[file].update(change)
    assert words in mistake(files)


def test_a_missing_key_is_named(files: dict) -> None:
    del files["studies/small_phantom.yaml"]["pairs"]["max_pairs"]
    line = mistake(files)
    assert line.endswith("small_phantom.yaml: pairs: the key 'max_pairs' is missing")


def test_an_unknown_class_of_a_target_is_suggested(files: dict) -> None:
    target = files["studies/small_phantom.yaml"]["targets"]["external"]
    target["classes"] = {"clinic": ["Pneumona"]}
    assert "unknown class 'Pneumona': did you mean 'Pneumonia'?" in mistake(files)


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


def test_an_unknown_adapter_is_suggested(files: dict) -> None:
    files["datasets.yaml"]["mnist"]["adapter"] = "mnits"
    assert "mnist: unknown adapter 'mnits': did you mean 'mnist'?" in mistake(files)


def test_a_calibration_split_that_is_the_pool_is_refused(files: dict) -> None:
    files["studies/small_phantom.yaml"]["calibration"]["split"] = "test"
    assert "must be disjoint from the pool" in mistake(files)


def test_more_pairs_used_than_drawn_are_refused(files: dict) -> None:
    files["studies/small_phantom.yaml"]["pairs"]["n_pairs"] = 81
    assert "pairs.n_pairs 81 is more than pairs.max_pairs 80" in mistake(files)


def test_a_model_in_two_zoos_is_refused(files: dict) -> None:
    files["studies/small_phantom.yaml"]["zoo"] = ["small_phantom", "small_digits"]
    assert "stands in another zoo of study 'small_phantom' too" in mistake(files)


def test_a_reserved_target_name_is_refused(files: dict) -> None:
    study = files["studies/small_phantom.yaml"]
    study["targets"] = {"source": {"dataset": "small_phantom"}}
    assert "'source' is a reserved name" in mistake(files)


def test_a_trained_model_needs_a_train_split(files: dict) -> None:
    del files["studies/small_phantom.yaml"]["source"]["train"]
    line = mistake(files)
    assert "source.train is missing" in line and "small_phantom.yaml" in line


def test_a_key_given_twice_is_refused_with_its_line(files: dict) -> None:
    files["zoo/small_phantom.yaml"] = "a: 1\nb: 2\na: 3\n"
    assert "small_phantom.yaml, line 3: the key 'a' stands twice" in mistake(files)


def test_broken_yaml_is_refused_with_its_line(files: dict) -> None:
    files["zoo/small_phantom.yaml"] = "a: [1, 2\nb: 3\n"
    assert "small_phantom.yaml, line 2" in mistake(files)


def test_a_model_key_with_a_slash_is_refused(files: dict) -> None:
    files["zoo/small_phantom.yaml"]["a/b"] = model("linear", "L")
    assert "a/b" in mistake(files)


def test_no_schema_has_a_default() -> None:
    """Snakemake's validation would write it into the configuration, and a new one rerun the zoo."""
    for file in sorted((ROOT / "workflow" / "schemas").rglob("*.yaml")):

        def walk(node: Any, file: Path = file) -> None:
            if isinstance(node, dict):
                assert "default" not in node, file
                for value in node.values():
                    walk(value)
            elif isinstance(node, list):
                for value in node:
                    walk(value)

        walk(yaml.safe_load(file.read_text()))


def test_the_shipped_configuration_is_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    plan = config.load(yaml.safe_load((ROOT / "config" / "config.yaml").read_text()))
    assert {len(study.models) for study in plan.studies.values()} == {12}
    assert "Generated data" in plan.studies["phantom"].notice


def test_every_key_of_the_schemas_is_documented() -> None:
    text = (ROOT / "config" / "README.md").read_text()

    def keys(node: Any) -> set[str]:
        found: set[str] = set()
        if isinstance(node, dict):
            properties = node.get("properties", {})
            found |= set(properties)
            for value in [
                *properties.values(),
                node.get("additionalProperties"),
                node.get("items"),
            ]:
                found |= keys(value)
        return found

    for file in sorted((ROOT / "workflow" / "schemas").rglob("*.yaml")):
        for key in keys(yaml.safe_load(file.read_text())):
            assert f"`{key}`" in text, f"{file.name}: '{key}' is not in config/README.md"


def test_a_model_that_cannot_be_scored_is_kept_apart(files: dict) -> None:
    files["zoo/small_phantom.yaml"]["few"]["unavailable"] = "no classifier"
    study = load(files).studies["small_phantom"]
    assert "few" not in study.models
    assert study.unavailable["few"]["reason"] == "no classifier"
    assert study.unavailable["few"]["label"] == "Linear, few"


def test_exposure_is_to_targets_and_its_names_are_checked(files: dict) -> None:
    files["zoo/small_phantom.yaml"]["few"]["contamination"] = ["small_phantom"]
    assert load(files).studies["small_phantom"].contaminated == {"few": ["external"]}
    files["zoo/small_phantom.yaml"]["few"]["contamination"] = ["small_fantom"]
    assert mistake(files) == (
        "config/studies/small_phantom.yaml: model 'few': contamination: unknown data set "
        "'small_fantom': did you mean 'small_phantom'?"
    )


def test_merged_classes_are_of_the_study_and_named_anew(files: dict) -> None:
    target = files["studies/small_phantom.yaml"]["targets"]["external"]
    target["merge"] = {"Nodule/Edema": ["Nodule", "Edema"]}
    target["classes"] = {"clinic": ["Nodule/Edema"]}
    study = load(files).studies["small_phantom"]
    assert study.classes_of("external")[-1] == "Nodule/Edema"
    assert study.classes_of("source") == study.classes
    target["merge"] = {"Edema": ["Nodule", "Pneumonia"]}
    target["classes"] = {}
    assert mistake(files).endswith("'Edema' is a class of the study already")
    target["merge"] = {"Nodule/Edema": ["Nodule", "Edma"]}
    assert mistake(files).endswith("unknown class 'Edma': did you mean 'Edema'?")


def test_a_folder_of_data_comes_from_its_entry_the_environment_or_the_data_folder(
    files: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"title": "t", "licence": "l", "citation": "c", "access": "form"}
    datasets = files["datasets.yaml"]
    datasets["nih-14"] = {"adapter": "nih", **texts}
    datasets["rsna"] = {"adapter": "rsna", **texts, "options": {"nih_lists": "{nih-14}"}}
    plan = load(files, data="images/")
    assert plan.datasets["nih-14"].root == "images/nih-14"
    assert plan.datasets["rsna"].options == {"nih_lists": "images/nih-14"}
    monkeypatch.setenv("STAMP_NIH_14_ROOT", "/mnt/nih")
    assert load(files).datasets["nih-14"].root == "/mnt/nih"
    assert load(files).datasets["rsna"].options == {"nih_lists": "/mnt/nih"}
    datasets["nih-14"]["root"] = "here"
    assert load(files).datasets["nih-14"].root == "here"


def test_an_address_with_a_password_is_refused_and_not_repeated(files: dict) -> None:
    entry = files["datasets.yaml"]["mnist"]
    entry["files"] = [{"name": "a.zip", "url": "https://user:secret@example.org/a.zip"}]
    said = mistake(files)
    assert said == "config/datasets.yaml: mnist: an address may not hold a name or a password"
    entry["files"] = [{"name": "../a.zip", "url": "https://example.org/a.zip"}]
    assert mistake(files).endswith("'../a.zip' is no plain file name")


def test_open_data_is_downloaded_and_gated_data_only_on_request(files: dict) -> None:
    entry = {"adapter": "nih", "title": "t", "licence": "l", "citation": "c"}
    for access in ("open", "kaggle", "physionet"):
        files["datasets.yaml"][access] = {**entry, "access": access}
    found = load(files).datasets
    assert [found[name].download for name in ("open", "kaggle", "physionet")] == [
        True,
        False,
        False,
    ]


def test_names_of_analyses_and_of_lists_of_classes_are_checked(files: dict) -> None:
    study = files["studies/small_digits.yaml"]
    study["analyses"] = ["temperatur"]
    line = "unknown analysis 'temperatur': did you mean 'temperature'?"
    assert mistake(files, studies=["small_digits"]).endswith(line)
    study["analyses"] = []
    study["targets"]["uci"]["logits"] = "imagenet_q"
    said = mistake(files, studies=["small_digits"])
    assert "targets.uci.logits: unknown list of classes 'imagenet_q'" in said
    study["targets"]["uci"]["logits"] = "imagenet_a"
    assert "unknown class 'n01498041'" in mistake(files, studies=["small_digits"])


def test_names_of_metrics_are_checked_against_the_task(files: dict) -> None:
    study = files["studies/small_digits.yaml"]
    study["metrics"] = ["entropi"]
    line = "metrics: unknown metric 'entropi': did you mean 'entropy'?"
    assert mistake(files, studies=["small_digits"]).endswith(line)
    study["metrics"] = ["cbpe_auroc"]
    line = "metrics: 'cbpe_auroc' is defined for multilabel studies only"
    assert mistake(files, studies=["small_digits"]).endswith(line)


ONLY = {"studies": ["small_digits"]}


def digits(files: dict) -> Study:
    return load(files, **ONLY).studies["small_digits"]


def test_only_the_passes_that_metrics_and_analyses_need_are_wanted(
    files: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = files["studies/small_digits.yaml"]

    def wanted(**changes: Any) -> list[str]:
        study.update(changes)
        return digits(files).kinds

    assert wanted() == []  # all metrics, but nothing compares them
    assert wanted(analyses=["baselines"], metrics=["entropy", "ece"]) == []
    assert wanted(metrics=["tta_multi", "aug_flip", "entropy"]) == ["flip", "tta"]
    made_up = Analysis(extra_outputs=("perturbations", "embeddings"))
    monkeypatch.setitem(analyses.ANALYSES, "families", made_up)
    assert wanted(analyses=["families"]) == ["embeddings", "perturbations"]
    assert wanted(analyses=["families", "baselines"]) == [
        "embeddings",
        "flip",
        "tta",
        "perturbations",
    ]
    assert digits(files).metric_kinds == [
        "flip",
        "tta",
    ]
    assert digits(files).target_kinds == []
    del study["metrics"]
    assert set(wanted()) == set(KINDS) - {*OF_TARGETS, "jacobian", "pixel_distances"}
    assert digits(files).target_kinds == list(OF_TARGETS)
    del study["targets"]
    assert digits(files).target_kinds == []


def test_settings_of_passes_have_defaults_and_bounds(files: dict) -> None:
    study = files["studies/small_digits.yaml"]
    assert digits(files).extra_outputs == ExtraOutputSettings()
    study["extra_outputs"] = {"images": 300, "head_dropout": 0.1}
    found = digits(files).extra_outputs
    assert (found.images, found.head_dropout, found.samples) == (300, 0.1, 20)
    study["extra_outputs"] = {"image": 300}
    assert "extra_outputs: unknown key 'image': did you mean 'images'?" in mistake(
        files, studies=["small_digits"]
    )


def test_lines_through_all_models_are_drawn_only_where_a_metric_needs_them(files: dict) -> None:
    study = files["studies/small_digits.yaml"]
    assert digits(files).agreement_on_the_line
    study["metrics"] = ["entropy", "tta_flip"]
    assert not digits(files).agreement_on_the_line


def test_the_delta_of_an_alarm_is_a_number_or_one_by_outcome(files: dict) -> None:
    study = files["studies/small_digits.yaml"]
    assert load(files, studies=["small_digits"]).studies["small_digits"].statistics.delta is None
    for delta in (0.5, {"uci": 0.5}):
        study["statistics"] = {**study.get("statistics", {}), "delta": delta}
        found = load(files, studies=["small_digits"]).studies["small_digits"]
        assert found.statistics.delta == delta
    study["statistics"]["delta"] = {"ucy": 0.5}
    said = mistake(files, studies=["small_digits"])
    assert said.endswith("statistics.delta: unknown outcome 'ucy': did you mean 'uci'?")


def test_the_margin_of_equivalence_is_above_0(files: dict) -> None:
    study = files["studies/small_digits.yaml"]
    assert digits(files).statistics.equivalence is None
    study["statistics"] = {**study.get("statistics", {}), "equivalence": 0.05}
    assert digits(files).statistics.equivalence == 0.05
    study["statistics"]["equivalence"] = 0
    assert "statistics.equivalence" in mistake(files, studies=["small_digits"])


def test_a_line_never_lists_a_thousand_names() -> None:
    line = suggest("zzz", [f"name-{number:04d}" for number in range(1519)])
    assert line.startswith("known: name-0000, ") and line.endswith(" and 1,479 more")
    assert suggest("zzz", ["a", "b"]) == "known: a, b"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"a: {b: [}", "f.yaml, line 1: "),
        (b"a: {{nih}}/images", "f.yaml, line 1: "),
        (b"a: b\x00c", "f.yaml: not valid YAML"),
        ("a: M\u00fcnchen".encode("latin-1"), "f.yaml: is not UTF-8"),
    ],
)
def test_a_file_that_is_no_yaml_is_one_line(tmp_path: Path, content: bytes, line: str) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(content)
    with pytest.raises(UserError) as caught:
        documents.read_yaml(file, "study")
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)
