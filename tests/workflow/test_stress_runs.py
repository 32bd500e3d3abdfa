"""Stress tests in real Snakemake runs: a further change runs its own images and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from project import PHANTOM, Project, jobs, model

from stamp.core.artifacts import read_arrays

STUDY = "small_phantom"
MODELS = ["few", "linear"]
TARGETS = [f"results/{STUDY}/figures/robustness.png", f"results/{STUDY}/page.html"]
MINE = '''

def negative_corner(pixels, ids, seed):
    """A corner that nobody looks at turns black."""
    found = pixels.clone()
    found[:, :3, :3] = 0
    return found
'''


def study() -> dict[str, Any]:
    """A study without targets."""
    document = {key: value for key, value in PHANTOM.items() if key != "targets"}
    metrics = {"analyses": ["baselines"], "metrics": ["entropy", "stress_metric"]}
    return {**document, **metrics, "stress": {"changes": ["noise", "exposure"], "images": 30}}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The study with its profile and page; read it, or copy it before changing anything."""
    project = Project.create(tmp_path_factory.mktemp("stress") / "project", {STUDY: study()})
    zoo = {
        "linear": model("linear", "Linear", epochs=3),
        "few": model("linear", "Linear, few", fraction=0.5),
    }
    project.write(f"zoo/{STUDY}.yaml", zoo)
    project.finish(*TARGETS)
    return project


@pytest.fixture
def copied(finished: Project, tmp_path: Path) -> Project:
    return finished.copy(tmp_path / "project")


def kept(project: Project) -> dict[str, int]:
    """The files of all changes, and when each was written."""
    folder = project.result(f"{STUDY}/stress_tests")
    found = sorted(folder.rglob("*.safetensors"))
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in found}


def profile(project: Project) -> pl.DataFrame:
    return pl.read_csv(
        project.result(f"{STUDY}/analyses/robustness_models.csv"), infer_schema_length=None
    )


def test_every_model_has_a_profile_where_a_study_has_no_target(finished: Project) -> None:
    assert set(kept(finished)) == {
        f"{change}/{name}.safetensors" for change in ("noise", "exposure") for name in MODELS
    }
    rows = profile(finished)
    assert set(rows["change"]) == {"clean", "noise", "exposure", "mean"}
    assert rows["images"].to_list() == [30] * len(rows) and rows["value"].null_count() == 0
    for name in MODELS:
        table = pl.read_parquet(finished.result(f"{STUDY}/metrics/{name}.parquet"))
        mean = rows.filter((pl.col("model") == name) & (pl.col("change") == "mean"))
        found = table.filter(pl.col("metric") == "stress_metric")
        assert found["value"].to_list() == pytest.approx(mean["value"].to_list())
    html = finished.result(f"{STUDY}/page.html").read_text()
    assert 'id="robustness"' in html and "What breaks it" in html
    assert finished.plan(*TARGETS) == jobs()


def test_a_change_of_ones_own_runs_its_own_images_and_what_follows(copied: Project) -> None:
    before = kept(copied)
    library = copied.folder / "workflow" / "scripts" / "stamp" / "images" / "stress_changes.py"
    library.write_text(library.read_text() + MINE)
    assert copied.plan(*TARGETS) == jobs()  # nobody asked for it
    copied.edit(
        f"studies/{STUDY}.yaml", lambda study: study["stress"]["changes"].append("negative_corner")
    )
    per_model = ["stress_tests {}", "model_profile {} robustness", "metrics {}"]
    own = [f"{job.format(STUDY)} {name}" for job in per_model for name in MODELS]
    ends = [f"analysis {STUDY} {name}" for name in ("robustness", "baselines")]
    assert copied.plan(*TARGETS) == jobs(
        own, ends, f"analysis_figure {STUDY} robustness", f"page {STUDY}"
    )
    copied.finish(*TARGETS)
    after = kept(copied)
    assert {path: after[path] for path in before} == before
    assert set(after) - set(before) == {f"negative_corner/{name}.safetensors" for name in MODELS}
    rows = profile(copied).filter(pl.col("change") == "negative_corner")
    assert rows["stability"].min() > 0.9


def test_a_model_of_precomputed_logits_is_shown_without_stress_tests(copied: Project) -> None:
    view = pl.read_parquet(copied.result(f"{STUDY}/views/source.parquet"))
    logits = read_arrays(copied.result(f"{STUDY}/logits/source/linear.safetensors"))["logits"]
    columns = {name: logits[:, at] for at, name in enumerate(PHANTOM["classes"])}
    pl.DataFrame({"image": view["image"], **columns}).write_csv(copied.folder / "own.csv")
    own = {**model("linear", "Own"), "load": {"source": "logits", "file": "own.csv"}}
    copied.edit(f"zoo/{STUDY}.yaml", lambda zoo: zoo.update(own=own))
    before = kept(copied)
    copied.finish(*TARGETS)
    assert kept(copied) == before
    manifest = json.loads(copied.result(f"{STUDY}/stress_tests/own.json").read_text())
    assert all("precomputed" in one["reason"] for one in manifest["extra_outputs"].values())
    rows = profile(copied).filter(pl.col("model") == "own")
    assert rows["value"].null_count() == len(rows) > 0
    assert rows.filter(pl.col("change") == "mean")["reason"].str.contains("precomputed").all()
