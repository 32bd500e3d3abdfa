"""Studies: their checks, and what rules ask of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from configured import digits, mistake, phantom
from naming import check_named
from project import ROOT

from stamp.config import plan
from stamp.config.labels import label_maps
from stamp.config.registries import analyses
from stamp.config.registries.extra_outputs import KINDS, OF_TARGETS
from stamp.config.study_file import ExtraOutputSettings, StudyFile
from stamp.core.errors import UserError


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
        (
            "studies/small_phantom.yaml",
            {"statistics": {"selections": {"mine": ["mixr"]}}},
            "selections.mine: unknown model 'mixr': did you mean 'mixer'?",
        ),
        ("studies/small_phantom.yaml", {"source": {"dataset": "mnits"}}, "did you mean 'mnist'?"),
    ],
)
def test_a_mistyped_name_in_a_study_is_suggested(
    files: dict, file: str, change: dict, words: str
) -> None:
    files[file].update(change)
    assert words in mistake(files)


@pytest.mark.parametrize("text", ["<img src=x onerror=alert(1)>", "@SUM(1)"])
def test_what_a_page_or_a_spreadsheet_would_run_is_refused_in_every_name(
    files: dict, text: str
) -> None:
    study = files["studies/small_phantom.yaml"]
    places: dict[str, tuple[Any, Any]] = {
        "title": (study, "title"),
        "notice": (study, "notice"),
        "classes": (study["classes"], 0),
        "source.domains": (study["source"]["domains"], 0),
        "targets.external.title": (study["targets"]["external"], "title"),
    }
    for place, (where, key) in places.items():
        kept = where[key] if isinstance(where, list) else where.get(key, "x")
        where[key] = text
        said = mistake(files)
        assert said.startswith(f"config/studies/small_phantom.yaml: {place}"), said
        assert repr(text) in said
        where[key] = kept


def test_an_unknown_class_of_a_target_is_suggested(files: dict) -> None:
    target = files["studies/small_phantom.yaml"]["targets"]["external"]
    target["classes"] = {"clinic": ["Pneumona"]}
    assert "unknown class 'Pneumona': did you mean 'Pneumonia'?" in mistake(files)


def test_a_calibration_split_that_is_the_pool_is_refused(files: dict) -> None:
    files["studies/small_phantom.yaml"]["calibration"]["split"] = "test"
    check_named(mistake(files), "calibration.split", "pairs.split", "'test'")


def test_more_pairs_used_than_drawn_are_refused(files: dict) -> None:
    files["studies/small_phantom.yaml"]["pairs"]["n_pairs"] = 81
    check_named(mistake(files), "pairs.n_pairs", 81, "pairs.max_pairs", 80)


def test_the_estimator_is_exact_unless_a_study_says_sampled(files: dict) -> None:
    assert phantom(files).estimator == "exact"
    files["studies/small_phantom.yaml"]["estimator"] = "sampled"
    assert phantom(files).estimator == "sampled"
    files["studies/small_phantom.yaml"]["estimator"] = "exakt"
    assert "did you mean 'exact'?" in mistake(files)


def test_the_papers_studies_keep_its_estimator() -> None:
    folder = Path(__file__).parents[2] / "config" / "studies"
    said = {
        file.stem: StudyFile(**yaml.safe_load(file.read_text())).estimator
        for file in folder.glob("*.yaml")
    }
    of_paper = {"natural", "medical_paper"}
    assert of_paper <= set(said)
    for name, estimator in said.items():
        assert estimator == ("sampled" if name in of_paper else "exact"), name


def test_a_model_in_two_zoos_is_refused(files: dict) -> None:
    files["studies/small_phantom.yaml"]["zoo"] = ["small_phantom", "small_digits"]
    check_named(mistake(files), "small_digits.yaml", "study 'small_phantom'")


def test_a_reserved_target_name_is_refused(files: dict) -> None:
    study = files["studies/small_phantom.yaml"]
    study["targets"] = {"source": {"dataset": "small_phantom"}}
    check_named(mistake(files), "targets", "'source'", "reserved")


def test_a_trained_model_needs_a_train_split(files: dict) -> None:
    del files["studies/small_phantom.yaml"]["source"]["train"]
    line = mistake(files)
    assert "source.train is missing" in line and "small_phantom.yaml" in line


def test_a_model_that_cannot_be_scored_is_kept_apart(files: dict) -> None:
    files["zoo/small_phantom.yaml"]["few"]["unavailable"] = "no classifier"
    study = phantom(files)
    assert "few" not in study.models
    assert study.unavailable["few"]["reason"] == "no classifier"
    assert study.unavailable["few"]["label"] == "Linear, few"


def test_an_optional_model_is_run_where_the_study_says_so_or_names_it(files: dict) -> None:
    files["zoo/small_phantom.yaml"]["few"]["optional"] = "it costs much"
    study = phantom(files)
    assert "few" not in study.models
    assert "it costs much" in study.unavailable["few"]["reason"]
    assert "optional_models" in study.unavailable["few"]["reason"]
    others = list(study.models)
    files["studies/small_phantom.yaml"]["models"] = ["few", others[0]]
    assert sorted(phantom(files).models) == sorted(["few", others[0]])
    del files["studies/small_phantom.yaml"]["models"]
    files["studies/small_phantom.yaml"]["optional_models"] = True
    assert sorted(phantom(files).models) == sorted(["few", *others])


def test_the_models_without_a_head_are_off_in_the_natural_study_and_are_listed() -> None:
    study = plan.read_plan(["natural"]).studies["natural"]
    headless = ["dino-b16", "dino-s16", "dinov2-b14", "mae-b16", "mocov3-b16"]
    assert list(study.unavailable) == headless
    assert len(study.models) == 28
    assert not any("random" in str(model.load) for model in study.models.values())


def test_pixel_caches_are_of_the_views_and_preprocessings_that_models_need(files: dict) -> None:
    small = {"size": 12, "channels": 1, "interpolation": "bilinear"}
    files["zoo/small_phantom.yaml"]["few"]["load"]["preprocessing"] = small
    study = phantom(files)
    views = {*study.forwarded_views, "train"}
    sizes = {model.preprocessing.key for model in study.models.values()}
    caches = [(view, how.key) for view, how in study.cached_pixels]
    assert len(sizes) == 2
    assert sorted(caches) == sorted((view, key) for view in views for key in sizes)


def test_exposure_is_to_targets_and_its_names_are_checked(files: dict) -> None:
    files["zoo/small_phantom.yaml"]["few"]["contamination"] = ["small_phantom"]
    assert phantom(files).contaminated == {"few": ["external"]}
    files["zoo/small_phantom.yaml"]["few"]["contamination"] = ["small_fantom"]
    where = ("config/studies/small_phantom.yaml", "'few'", "contamination")
    check_named(mistake(files), *where, "'small_fantom'", "did you mean 'small_phantom'?")


def test_other_labels_of_images_that_a_model_met_count_as_met(files: dict) -> None:
    sets, target = (
        files["datasets.yaml"],
        files["studies/small_phantom.yaml"]["targets"]["external"],
    )
    sets["again"] = {**sets[target["dataset"]], "relabels": target["dataset"]}
    files["zoo/small_phantom.yaml"]["few"]["contamination"] = [target["dataset"]]
    target["dataset"] = "again"
    assert phantom(files).contaminated == {"few": ["external"]}
    del sets["again"]["relabels"]
    assert phantom(files).contaminated == {}


def test_merged_classes_are_of_the_study_and_named_anew(files: dict) -> None:
    target = files["studies/small_phantom.yaml"]["targets"]["external"]
    target["merge"] = {"Nodule/Edema": ["Nodule", "Edema"]}
    target["classes"] = {"clinic": ["Nodule/Edema"]}
    study = phantom(files)
    assert study.classes_of("external")[-1] == "Nodule/Edema"
    assert study.classes_of("source") == study.classes
    target["merge"] = {"Edema": ["Nodule", "Pneumonia"]}
    target["classes"] = {}
    assert mistake(files).endswith("'Edema' is a class of the study already")
    target["merge"] = {"Nodule/Edema": ["Nodule", "Edma"]}
    assert mistake(files).endswith("unknown class 'Edma': did you mean 'Edema'?")


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


def test_the_changes_of_stress_tests_are_checked_and_ask_for_their_analysis(files: dict) -> None:
    study = files["studies/small_digits.yaml"]
    study["stress"] = {"changes": ["nois"]}
    line = "stress.changes: unknown change 'nois': did you mean 'noise'?"
    assert mistake(files, studies=["small_digits"]).endswith(line)
    study["stress"] = {"changes": ["noise", "blur"]}
    found = digits(files)
    assert found.stress is not None and found.stress.images == 1000
    assert "robustness" in found.analyses and {"stress_metric"} <= set(found.metrics)
    assert found.metric_stress_changes == []  # nothing compares metrics
    study["analyses"] = ["robustness", "baselines"]
    assert digits(files).analyses == ["robustness", "baselines"]
    assert digits(files).metric_stress_changes == ["noise", "blur"]
    study["metrics"] = ["entropy"]
    assert digits(files).metric_stress_changes == []


def test_what_needs_stress_tests_is_refused_without_them(files: dict) -> None:
    study = files["studies/small_digits.yaml"]
    assert not [name for name in digits(files).metrics if name.startswith("stress")]
    study["analyses"] = ["robustness"]
    line = "analyses: 'robustness' needs the study's 'stress'"
    assert mistake(files, studies=["small_digits"]).endswith(line)
    study["analyses"], study["metrics"] = [], ["stress_stability"]
    line = "metrics: 'stress_stability' needs the study's 'stress'"
    assert mistake(files, studies=["small_digits"]).endswith(line)


def test_optional_metrics_come_beside_the_others_where_a_study_names_them(files: dict) -> None:
    study = files["studies/small_digits.yaml"]
    usual = digits(files).metrics
    assert "persistence_h1" not in usual and digits(files).metric_packages == {}
    study["optional_metrics"] = ["persistence_h1"]
    assert set(digits(files).metrics) == {*usual, "persistence_h1"}
    assert list(digits(files).metric_packages) == ["gudhi"]
    study["optional_metrics"] = ["entropy"]
    assert "optional_metrics: unknown metric 'entropy'" in mistake(files, studies=["small_digits"])
    study |= {"optional_metrics": [], "metrics": ["persistence_h1"]}
    assert digits(files).metrics == ["persistence_h1"]


def test_a_sum_of_metrics_brings_its_parts_and_no_agreement_of_models(files: dict) -> None:
    study = files["studies/small_digits.yaml"]
    study["metrics"] = ["topogeo"]
    parts = ["laplacian_logdet", "ollivier_ricci", "persistence_h0"]
    assert digits(files).metrics == [*parts, "topogeo"]
    assert not digits(files).agreement_on_the_line


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
    made_up = analyses.Analysis(extra_outputs=("perturbations", "embeddings"))
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
    assert digits(files).statistics.delta is None
    for delta in (0.5, {"uci": 0.5}):
        study["statistics"] = {**study.get("statistics", {}), "delta": delta}
        found = digits(files)
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


def test_streamed_targets_have_predictions_and_others_logits(files: dict) -> None:
    study = files["studies/small_digits.yaml"]
    study["targets"]["uci"]["streamed"] = True
    found = digits(files)
    assert found.streamed_targets == ["uci"] and found.is_streamed("uci")
    assert "uci" not in found.cached_targets
    assert found.forwarded_views == [*found.source_views, *found.cached_targets]
    assert len(found.forwarded) == len(found.models) * len(found.forwarded_views)
    assert found.outcome_views == ["source", *study["targets"]]


def test_pixels_are_kept_up_to_a_size_for_training_and_for_the_study_s_own_preprocessing(
    files: dict,
) -> None:
    study, zoo = files["studies/small_digits.yaml"], files["zoo/small_digits.yaml"]
    zoo["few"]["load"]["preprocessing"] = {"size": 300}
    views, own = ["source", "id", "uci"], study["preprocessing"]["size"]

    def kept() -> set[tuple[str, int]]:
        return {(view, how.size) for view, how in digits(files).cached_pixels}

    small = {(view, own) for view in views}
    trained = {("train", own), ("train", 300)}
    assert kept() == small | trained
    study["cached_size"] = 300
    assert kept() == small | trained | {(view, 300) for view in views}
    study["cached_size"] = 0
    assert kept() == small | trained
    study["cached_size"] = -1
    assert "cached_size" in mistake(files, studies=["small_digits"])


def test_another_model_of_a_preprocessing_changes_nobody_s_pixels(files: dict) -> None:
    zoo = files["zoo/small_digits.yaml"]
    zoo["few"]["load"]["preprocessing"] = {"size": 300}
    before = digits(files).cached_pixels
    zoo["more"] = {**zoo["few"], "label": "More"}
    assert digits(files).cached_pixels == before


def test_the_source_is_evaluated_on_the_view_id_too(files: dict) -> None:
    study = files["studies/small_digits.yaml"]
    study["id"] = {"split": "test"}
    found = digits(files)
    assert found.evaluated_views("source") == ["source", "id"]
    assert found.evaluated_split("source") == "test"
    assert found.evaluated_views("uci") == ["uci"] and found.evaluated_split("uci") is None
    del study["id"]
    assert digits(files).evaluated_views("source") == ["source"]


def test_a_list_of_classes_restricts_a_target_and_the_source_beside_it(files: dict) -> None:
    study = files["studies/small_digits.yaml"]
    study["targets"]["uci"]["logits"] = "labeled"
    found = digits(files)
    assert found.classes_among("uci") == "labeled" and found.classes_among("source") is None
    assert found.class_subsets("source") == {"uci": "labeled"} and not found.class_subsets("uci")
    assert found.labeled_targets("source") == ["uci"] and found.labeled_targets("uci") == []
    assert found.scored_classes["uci"] == {"classes": {}, "merge": {}, "among": "labeled"}


def test_labeled_classes_are_those_of_a_target_with_sorted_domains(files: dict) -> None:
    target = files["studies/small_phantom.yaml"]["targets"]["external"]
    target["classes"] = {"north": ["Nodule"], "clinic": ["Edema"]}
    study = phantom(files)
    assert list(study.labeled_classes("external")) == ["clinic", "north"]
    assert study.labeled_classes("source") == {} and study.merged_classes("source") == {}
    assert study.matched_targets == ["external"]


def test_a_merged_class_is_one_class_in_all_targets_and_the_source_has_it_too(files: dict) -> None:
    targets = files["studies/small_phantom.yaml"]["targets"]
    targets["external"]["merge"] = {"Opacity": ["Nodule", "Edema"]}
    targets["other"] = {**targets["external"], "merge": {"Opacity": ["Edema", "Nodule"]}}
    assert phantom(files).evaluated_merges("source") == {"Opacity": ["Edema", "Nodule"]}
    assert phantom(files).merged_classes("source") == {}
    targets["other"]["merge"] = {"Opacity": ["Nodule", "Effusion"]}
    with pytest.raises(UserError, match=r"targets\.other\.merge: 'Opacity'.*'external'"):
        phantom(files)


def test_what_decides_the_pairs_leaves_out_how_many_are_used(files: dict) -> None:
    pairs = files["studies/small_phantom.yaml"]["pairs"]
    before = phantom(files).pairs
    pairs.update(n_pairs=40, n_pairs_sweep=[20])
    after = phantom(files).pairs
    assert after.drawn == before.drawn and list(after.drawn) == sorted(after.drawn)
    assert before.scored_numbers == [] and after.scored_numbers == [20, 80]


def test_words_around_figures_have_a_target_s_name_where_it_has_no_title(files: dict) -> None:
    target = files["studies/small_phantom.yaml"]["targets"]["external"]
    target.pop("title", None)
    assert phantom(files).texts["targets"]["external"] == "external"
    target["title"] = "Elsewhere"
    assert phantom(files).texts["targets"]["external"] == "Elsewhere"


def test_the_papers_study_reads_targets_as_the_paper_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    found = plan.read_plan(["medical", "medical_paper"])
    ours, theirs = (found.studies[name] for name in ("medical", "medical_paper"))
    assert theirs.pairs.mode == "one_per_group" and theirs.pairs.order == "image"
    sets = {key: found.datasets[target.dataset[0]] for key, target in theirs.targets.items()}
    assert sets["chexpert"].options == {"splits": ["train"], "uncertain": "zero"}
    assert sets["vindr"].options["agreement"] == "unanimous"
    assert sets["vindr"].options["splits"] == ["train", "test"]
    for key, own in ours.targets.items():
        assert sets[key].root == found.datasets[own.dataset[0]].root, "the same folder"
    shared = [label for label, name in label_maps.read("mimic_cxr").items() if label == name]
    assert sorted(theirs.targets["mimic"].classes["all"]) == sorted(shared)
    assert sets["mimic"].options == {"classes": theirs.targets["mimic"].classes["all"]}
    counts = {key: len(target.classes["all"]) for key, target in theirs.targets.items()}
    assert counts == {"vindr": 9, "chexpert": 7, "mimic": 6, "rsna": 1}, "as the paper prints"
    assert theirs.contaminated == ours.contaminated, "other labels are no other images"
    assert theirs.relabelled == ours.relabelled == ["rsna"]
    assert theirs.statistics.mixed and theirs.statistics.selections == ours.statistics.selections


def test_an_expected_class_mix_is_of_the_studys_classes_and_multiclass(files: dict) -> None:
    target = files["studies/small_digits.yaml"]["targets"]["uci"]
    target["class_mix"] = {"all": {"7": 2, "1": 0.5}}
    assert digits(files).class_mix == {"uci": {"all": {"1": 0.5, "7": 2}}}
    target["class_mix"] = {"all": {"11": 1}}
    said = mistake(files, studies=["small_digits"])
    assert "targets.uci.class_mix.all" in said and "'11'" in said
    del target["class_mix"]
    target = files["studies/small_phantom.yaml"]["targets"]["external"]
    target["class_mix"] = {"all": {"Edema": 1}}
    assert "targets.external.class_mix" in mistake(files) and "multiclass" in mistake(files)


def test_what_models_were_pretrained_on_is_told_where_it_differs(files: dict) -> None:
    study = digits(files)
    assert {said["pretraining"] for said in study.described_models.values()} == {"none"}
    assert study.texts["pretraining"] == {}
    zoo = next(value for key, value in files.items() if key.startswith("zoo/") and "digits" in key)
    first = next(iter(zoo))
    zoo[first]["pretraining"] = "in1k"
    assert digits(files).texts["pretraining"][first] == "in1k"


def test_the_page_is_told_which_trained_models_end_with_a_head_on_a_frozen_backbone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    for study in plan.read_plan(["phantom", "digits"]).studies.values():
        assert study.page_facts["frozen"] == ["resnet-random-backbone", "resnet-selfsupervised"]
