"""Extra inference outputs: made where a metric needs them, kept while what they are made from is.

Asked of real Snakemake on one small study without targets, up to the figure of its baselines.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from project import MIXER, PHANTOM, Project, jobs, model

from stamp.config.registries.extra_outputs import KINDS, OF_TARGETS
from stamp.config.registries.metrics import metrics_of

STUDY = "small_phantom"
MODELS = ["linear", "mixer"]
TARGET = f"results/{STUDY}/figures/baselines.png"
COMPARED = [f"analysis {STUDY} baselines", f"analysis_figure {STUDY} baselines"]
FIRST = ["entropy", "tta_flip", "mc_dropout", "gradcam_dice", "embedding_instability"]


def study() -> dict[str, Any]:
    document = {key: value for key, value in PHANTOM.items() if key != "targets"}
    settings = {"metrics": FIRST, "extra_outputs": {"images": 20}}
    return {**document, "analyses": ["baselines"], **settings}


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The study with its comparison finished; read it, or copy it before changing anything."""
    project = Project.create(tmp_path_factory.mktemp("extra_outputs") / "project", {STUDY: study()})
    zoo = {
        "linear": model("linear", "Linear", epochs=3),
        "mixer": model("mlp_mixer:MlpMixer", "Mixer", MIXER, epochs=2),
    }
    project.write(f"zoo/{STUDY}.yaml", zoo)
    project.finish(TARGET)
    return project


@pytest.fixture
def copied(compared: Project, tmp_path: Path) -> Project:
    return compared.copy(tmp_path / "project")


def manifest(project: Project, name: str) -> dict[str, Any]:
    return json.loads(project.result(f"{STUDY}/extra_outputs/{name}.json").read_text())[
        "extra_outputs"
    ]


def files(project: Project) -> dict[str, int]:
    """The kept files of all extra outputs, and when each was written."""
    folder = project.result(f"{STUDY}/extra_outputs")
    found = sorted(folder.rglob("*.safetensors"))
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in found}


def test_only_what_the_metrics_need_is_made_and_the_rest_has_a_reason(compared: Project) -> None:
    assert {path.split("/")[0] for path in files(compared)} == {
        "embeddings",
        "flip",
        "gradcam",
        "mc_dropout",
    }
    for name in MODELS:
        assert set(manifest(compared, name)) == {"embeddings", "flip", "gradcam", "mc_dropout"}
        assert "it has none of its own" in manifest(compared, name)["mc_dropout"]["note"]
    assert manifest(compared, "mixer")["gradcam"]["images"] == 20
    assert "no blocks are known" in manifest(compared, "linear")["gradcam"]["reason"]
    assert compared.plan(TARGET) == jobs()


def test_an_edited_metric_or_figure_makes_no_output_again(copied: Project) -> None:
    copied.change_code("report/analyses/baselines/figure.py")
    assert copied.plan(TARGET) == jobs(COMPARED[1:])
    copied.change_code("metrics/of_embeddings/embeddings.py")
    assert copied.plan(TARGET) == jobs([f"metrics {STUDY} {name}" for name in MODELS], COMPARED)


def test_edited_code_of_extra_outputs_makes_them_again_but_no_logits(copied: Project) -> None:
    copied.change_code("images/augmentations.py")
    branch = [f"{rule} {STUDY} {name}" for rule in ("extra_outputs", "metrics") for name in MODELS]
    assert copied.plan(TARGET) == jobs(branch, COMPARED)


def test_a_model_added_makes_its_own_outputs_only(copied: Project) -> None:
    copied.edit(f"zoo/{STUDY}.yaml", lambda zoo: zoo.update(new=model("linear", "New")))
    branch = ["train", "calibrate", "score", "extra_outputs", "metrics"]
    own = [f"{rule} {STUDY} new" for rule in branch]
    own += [f"logits {STUDY} source new", f"evaluate {STUDY} source new"]
    assert copied.plan(TARGET) == jobs(own, f"collect {STUDY}", COMPARED)


def test_a_target_brings_outputs_of_its_own_and_leaves_the_sources_alone(copied: Project) -> None:
    kept = files(copied)
    more = {
        "metrics": [*FIRST, "fd_target", "mmd", "leep_target"],
        "optional_metrics": ["projection_norm"],
        "targets": PHANTOM["targets"],
    }
    copied.edit(f"studies/{STUDY}.yaml", lambda study: study.update(more))
    planned = copied.plan(TARGET)
    for rule in ("target_embeddings", "projection_norm"):
        assert {f"{rule} {STUDY} {name}" for name in MODELS} <= set(planned)
    assert not [
        job for job in planned if job.startswith(("extra_outputs", f"logits {STUDY} source"))
    ]
    copied.finish(TARGET)
    assert files(copied) == kept
    for name in MODELS:
        table = pl.read_parquet(copied.result(f"{STUDY}/metrics/{name}.parquet"))
        found = table.filter(pl.col("metric") == "fd_target")
        assert set(found["view"]) == set(PHANTOM["targets"])
        assert found["value"].min() > 0 and found["n"].min() > 1
        assert table.filter(pl.col("metric") == "mmd")["value"].min() > 0
        assert table.filter(pl.col("metric") == "leep_target")["value"].max() < 0
    compared = pl.read_csv(copied.result(f"{STUDY}/analyses/baselines_models.csv"))
    trained = compared.filter(pl.col("metric") == "projection_norm")
    assert set(trained["model"]) == set(MODELS) and trained["value"].min() > 0
    assert copied.plan(TARGET) == jobs()


def test_metrics_that_need_no_extra_output_make_none(copied: Project) -> None:
    copied.edit(f"studies/{STUDY}.yaml", lambda study: study.update(metrics=["entropy", "ece"]))
    assert copied.plan(TARGET) == jobs([f"metrics {STUDY} {name}" for name in MODELS], COMPARED)


def test_all_metrics_make_the_outputs_that_are_missing_and_keep_the_others(
    copied: Project,
) -> None:
    before = files(copied)
    copied.edit(f"studies/{STUDY}.yaml", lambda study: study.pop("metrics"))
    copied.finish(TARGET)
    after = files(copied)
    assert {path: after[path] for path in before} == before
    wanted = {kind for metric in metrics_of("multilabel") for kind in metric.extra_outputs}
    wanted -= set(OF_TARGETS)
    assert wanted == set(KINDS) - {"perturbations", "jacobian", "pixel_distances", *OF_TARGETS}
    for name in MODELS:
        assert set(manifest(copied, name)) == wanted
        table = pl.read_parquet(copied.result(f"{STUDY}/metrics/{name}.parquet"))
        every = metrics_of("multilabel", stress_tests=False)
        assert table["metric"].to_list() == [metric.name for metric in every]
        assert table.filter(pl.col("value").is_null() & pl.col("reason").is_null()).is_empty()
        known = set(table.drop_nulls("value")["metric"])
        assert {"aug_crop", "tta_multi", "fd_frechet", "rot_acc", "effective_rank"} <= known
    assert copied.plan(TARGET) == jobs()
