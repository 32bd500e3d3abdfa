"""What predictors cost: read from benchmark files, added up by hand."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from made_up_metrics import MODELS, study
from made_up_study import one

import timings as script
from stamp.core.artifacts import read_table, write_json, write_table
from stamp.report.analyses.cost import table as cost
from stamp.report.timings import COLUMNS, benchmark_seconds, table

HEAD = "s\th:m:s\tmax_rss\tcpu_time"


def measured(path: Path, *seconds: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([HEAD, *(f"{s}\t0:00:01\t-\tNA" for s in seconds)]) + "\n")
    return path


def test_seconds_are_the_mean_of_the_repeats(tmp_path: Path) -> None:
    assert benchmark_seconds(measured(tmp_path / "a.tsv", 2.0, 4.0)) == 3.0


class Files(SimpleNamespace):
    def __getitem__(self, name: str) -> object:
        return getattr(self, name)


def test_every_job_of_a_study_is_a_row(tmp_path: Path) -> None:
    views = [tmp_path / "source.parquet", tmp_path / "far.parquet"]
    for path, n in zip(views, (5, 7), strict=True):
        write_table(path, pl.DataFrame({"image": [str(i) for i in range(n)]}), {})
    forwarded = [["m", "source"], ["m", "far"]]
    manifest = tmp_path / "m.json"
    entry = {"file": "x", "digest": "y", "images": 5, "forwarded": 10, "seconds": 1.5}
    write_json(
        manifest, {"extra_outputs": {"flip": entry, "mc_dropout": {"reason": "no dropout layer"}}}
    )
    tests = tmp_path / "stress.json"
    write_json(tests, {"extra_outputs": {"blur": {**entry, "forwarded": 500}}})
    job = SimpleNamespace(
        params=SimpleNamespace(models=["m"], views=["source", "far"], forwarded=forwarded),
        wildcards=SimpleNamespace(study="s"),
        input=Files(
            views=views,
            logits=[measured(tmp_path / f"l{k}.tsv", 1.0 + k) for k in range(2)],
            agreement_on_the_line=measured(tmp_path / "lines.tsv", 9.0),
            extra_outputs=[manifest],
            target_embeddings=[],
            stress_tests=[tests],
            **{
                name: [measured(tmp_path / f"{name}.tsv", 0.5)]
                for name in ("calibrate", "score", "metrics", "projection_norm")
            },
        ),
        output=[tmp_path / "costs.parquet"],
    )
    script.main(job)
    found = read_table(job.output[0], study="s")
    assert found.rows() == [
        ("m", "logits", "source", 5, 1.0),
        ("m", "logits", "far", 7, 2.0),
        ("m", "calibrate", None, 0, 0.5),
        ("m", "score", None, 0, 0.5),
        ("m", "metrics", None, 0, 0.5),
        (None, "agreement_on_the_line", None, 0, 9.0),
        ("m", "projection_norm", None, 0, 0.5),
        ("m", "extra_outputs", "flip", 10, 1.5),
        ("m", "stress_tests", "blur", 500, 1.5),
    ]


def test_a_predictor_costs_its_own_passes_and_those_it_shares_with_stamp() -> None:
    rows = []
    for model in MODELS:
        for stage, part, images, seconds in (
            ("logits", "source", 100, 10.0),
            ("logits", "far", 300, 30.0),
            ("calibrate", None, 0, 1.0),
            ("score", None, 0, 2.0),
            ("metrics", None, 0, 0.5),
        ):
            rows.append(dict(zip(COLUMNS, (model, stage, part, images, seconds), strict=True)))
    found = cost.table(dataclasses.replace(study(), costs=table(rows)))
    own = one(found, predictor="STAMP")
    assert (own["images"], own["seconds"], own["images_per_model"]) == (1200, 156.0, 100.0)
    assert own["times_stamp"] == 1 and not (own["labels"] or own["target_images"])
    outputs = one(found, predictor="Outputs")
    assert (outputs["images"], outputs["extra_images"], outputs["labels"]) == (1200, 0, True)
    target = one(found, predictor="Target images")
    assert (target["images"], target["seconds"], target["extra_images"]) == (4800, 486.0, 3600)
    assert target["members"] == "DoC" and target["target_images"] and not target["other_models"]
    assert target["times_stamp"] == pytest.approx(486 / 156)
    assert "Target images took 3.1 times as long" in cost.sentence(found)


def test_further_labeled_source_images_cost_the_source_metric_and_nothing_else() -> None:
    jobs = (("source", 100, 10.0), ("id", 400, 40.0), ("far", 300, 30.0))
    rows = [
        dict(zip(COLUMNS, (model, "logits", part, images, seconds), strict=True))
        for model in MODELS
        for part, images, seconds in jobs
    ]
    found = cost.table(dataclasses.replace(study(), costs=table(rows)))
    images = dict(found.select("predictor", "images_per_model").iter_rows())
    assert images["STAMP"] == images["Outputs"] == 100
    assert images["Source metric"] == 500
    assert images["Target images"] == 400


def test_a_study_without_measurements_says_so() -> None:
    empty = dataclasses.replace(study(), costs=table([]))
    assert "no job of the study has been measured" in cost.sentence(cost.table(empty))
