"""What predictors cost: read from the logs of jobs, added up by hand."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from made_up_metrics import MODELS, study
from made_up_study import one

import timings as script
from stamp.core import progress
from stamp.core.artifacts import read_table, write_json, write_table
from stamp.core.progress import JobCost, read_cost
from stamp.report.analyses.cost import table as cost
from stamp.report.timings import COLUMNS, table


def log_of(path: Path, work: float, *loops: float) -> Path:
    """The log of a job that worked so long, with loops over images among it, after two seconds."""
    passes = [f"m v: 5 images (9/s), {one * 3:.2f} s, {one:.2f} s of CPU" for one in loops]
    whole = f"{work * 2:.2f} s, {work:.2f} s of CPU after 2.00 s of start-up, 9 MB"
    path.write_text("; ".join(["done", "device cpu", *passes, whole, "polars 2.1.0"]) + "\n")
    return path


def test_a_job_costs_its_loops_over_images_or_else_its_work_and_its_start_apart(
    tmp_path: Path,
) -> None:
    assert read_cost(log_of(tmp_path / "a.log", 9, 0.25, 0.5)) == JobCost(2.25, 0.75, 2.0)
    assert read_cost(log_of(tmp_path / "b.log", 0.5)) == JobCost(1.0, 0.5, 2.0)


def test_a_job_that_failed_or_left_no_log_has_no_cost(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("stamp: model 'm': no such file\n")
    assert read_cost(tmp_path / "a.log") is None
    assert read_cost(tmp_path / "none.log") is None


def test_what_a_job_writes_of_itself_is_read_again(tmp_path: Path) -> None:
    progress.begin_job(tmp_path / "a.log")
    with progress.bar(None, "m source", 10) as shown:
        shown.update(10)
        until = time.process_time() + 0.05
        while time.process_time() < until:
            pass
    (tmp_path / "a.log").write_text(progress.summary() + "\n")
    progress._job.clear()
    found = read_cost(tmp_path / "a.log")
    assert found is not None and found.start_up is not None and found.start_up > 0
    assert found.cpu >= 0.05


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
    entry |= {"cpu_seconds": 1.25}
    write_json(
        manifest, {"extra_outputs": {"flip": entry, "mc_dropout": {"reason": "no dropout layer"}}}
    )
    tests = tmp_path / "stress.json"
    write_json(tests, {"extra_outputs": {"blur": {**entry, "forwarded": 500}}})
    names = ("calibrate", "score", "projection_norm")
    logs = {name: [log_of(tmp_path / f"{name}.log", 0.5)] for name in names}
    job = SimpleNamespace(
        params=Files(
            models=["m"],
            views=["source", "far"],
            forwarded=forwarded,
            logits=[log_of(tmp_path / f"l{k}.log", 9.0, 1.0 + k) for k in range(2)],
            metrics=[tmp_path / "deleted.log"],
            lines=[log_of(tmp_path / "lines.log", 9.0)],
            **logs,
        ),
        wildcards=SimpleNamespace(study="s"),
        input=SimpleNamespace(
            views=views, extra_outputs=[manifest], target_embeddings=[], stress_tests=[tests]
        ),
        output=[tmp_path / "costs.parquet"],
    )
    script.main(job)
    found = read_table(job.output[0], study="s")
    assert found.rows() == [
        ("m", "logits", "source", 5, 1.0, 3.0, 2.0),
        ("m", "logits", "far", 7, 2.0, 6.0, 2.0),
        ("m", "calibrate", None, 0, 0.5, 1.0, 2.0),
        ("m", "score", None, 0, 0.5, 1.0, 2.0),
        ("m", "metrics", None, 0, None, None, None),
        (None, "agreement_on_the_line", None, 0, 9.0, 18.0, 2.0),
        ("m", "projection_norm", None, 0, 0.5, 1.0, 2.0),
        ("m", "extra_outputs", "flip", 10, 1.25, 1.5, None),
        ("m", "stress_tests", "blur", 500, 1.25, 1.5, None),
    ]


def row(model: str, stage: str, part: str | None, images: int, cpu: float) -> dict[str, Any]:
    """A job that took twice as long on the clock, and a second to start."""
    return dict(zip(COLUMNS, (model, stage, part, images, cpu, 2 * cpu, 1.0), strict=True))


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
            rows.append(row(model, stage, part, images, seconds))
    found = cost.table(dataclasses.replace(study(), costs=table(rows)))
    own = one(found, predictor="STAMP")
    assert (own["images"], own["cpu_seconds"], own["images_per_model"]) == (1200, 156.0, 100.0)
    assert (own["seconds"], own["start_cpu_seconds"]) == (312.0, 36.0)
    assert own["times_stamp"] == 1 and not (own["labels"] or own["target_images"])
    outputs = one(found, predictor="Outputs")
    assert (outputs["images"], outputs["extra_images"], outputs["labels"]) == (1200, 0, True)
    target = one(found, predictor="Target images")
    assert (target["images"], target["cpu_seconds"], target["extra_images"]) == (4800, 486.0, 3600)
    assert target["members"] == "DoC" and target["target_images"] and not target["other_models"]
    assert target["times_stamp"] == pytest.approx(486 / 156)
    assert "Target images took 3.1 times as much" in cost.sentence(found)


def test_further_labeled_source_images_cost_the_source_metric_and_nothing_else() -> None:
    jobs = (("source", 100, 10.0), ("id", 400, 40.0), ("far", 300, 30.0))
    rows = [
        row(model, "logits", part, images, seconds)
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
