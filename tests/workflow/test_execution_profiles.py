"""Analyses of cached outputs in real runs: what comes out, and which jobs one more schedules."""

from __future__ import annotations

from collections import Counter

import polars as pl
from project import Project

from stamp.core.artifacts import read_json
from stamp.report.analyses.layers import table as layers
from stamp.report.analyses.seeds import table as seeds

MODELS = ["few", "linear", "mixer", "noisy"]
STUDY = "small_phantom"
PAGES = [f"page {STUDY}", "index_page"]


def analyse(project: Project, *names: str) -> None:
    change = {"analyses": list(names), "extra_outputs": {"images": 40}}
    project.edit(f"studies/{STUDY}.yaml", lambda study: study.update(change))


def profiles(name: str) -> list[str]:
    return [f"model_profile {STUDY} {name} {model}" for model in MODELS]


def test_an_analysis_of_cached_outputs_runs_its_own_jobs_and_no_forward_pass(
    project: Project,
) -> None:
    analyse(project, "seeds")
    planned = Counter([*profiles("seeds"), f"analysis {STUDY} seeds", *PAGES])
    assert project.plan() == planned
    project.finish()
    found = pl.read_csv(project.result(f"{STUDY}/analyses/seeds.csv"), schema=seeds.TABLE)
    both = found.filter((pl.col("models") == "all") & (pl.col("redrawn") == "both"))
    assert (both["draws"] == 100).all() and (both["mean_sd"] > 0).all()

    analyse(project, "seeds", "gaps")
    drawn = [f"{rule} {STUDY} gaps" for rule in ("analysis", "analysis_figure")]
    assert project.plan() == Counter([*profiles("gaps"), *drawn, *PAGES])
    analyse(project, "seeds", "layers")
    forwards = [f"extra_outputs {STUDY} {model}" for model in MODELS]
    ends = [f"analysis {STUDY} layers", f"analysis_figure {STUDY} layers", *PAGES]
    assert project.plan() == Counter([*forwards, *profiles("layers"), *ends])
    analyse(project, "seeds", "layers", "motif")
    both_drawn = [f"{rule} {STUDY} motif" for rule in ("analysis", "analysis_figure")]
    assert project.plan() == Counter([*forwards, *profiles("layers"), *ends, *both_drawn])


def test_every_analysis_of_cached_outputs_comes_out_of_a_run(project: Project) -> None:
    names = [
        "bounds",
        "cosines",
        "gaps",
        "identifiability",
        "layers",
        "motif",
        "nuisance",
        "ordering",
        "seeds",
    ]
    analyse(project, *names)
    project.finish()
    for name in names:
        words = project.result(f"{STUDY}/analyses/{name}.txt").read_text()
        assert words.endswith(".\n"), name
    for name in ("gaps", "layers", "motif", "nuisance"):
        assert project.result(f"{STUDY}/figures/{name}.png").is_file()
    assert project.plan() == Counter()
    tables = {
        name: pl.read_parquet(project.result(f"{STUDY}/profiles/{name}/mixer.parquet"))
        for name in names
        if name != "motif"
    }
    ratios = tables["nuisance"].filter(pl.col("quantity") == "ratio")
    assert (ratios["value"] > 0).all() and (ratios["n"] == 40).all()
    steep = dict(tables["identifiability"].select("quantity", "value").iter_rows())
    assert steep["lipschitz_spectral"] > steep["lipschitz"] > 0 and steep["lipschitz_pairs"] > 0
    taps = tables["layers"].filter(pl.col("quantity") == "raw")
    assert taps["value"].is_not_null().all()
    board = pl.read_parquet(project.result(f"{STUDY}/statistics/scores.parquet"))
    own = board.filter(pl.col("model") == "mixer")["sampled_stamp"][0]
    assert abs(taps.filter(pl.col("part") == "output")["value"][0] - own) < 1e-9
    schema = layers.MODELS
    rows = pl.read_csv(project.result(f"{STUDY}/analyses/layers_models.csv"), schema=schema)
    lost = rows.filter((pl.col("model") == "linear") & (pl.col("layer") == "early"))
    record = read_json(project.result(f"{STUDY}/extra_outputs/linear.json"))
    assert lost["reason"][0] == record["extra_outputs"]["embeddings"]["taps"]


def test_jacobians_are_of_the_outputs_that_are_scored_and_alone_depend_on_their_temperature(
    project: Project,
) -> None:
    study, name = "small_digits", "linear"
    target = f"results/{study}/extra_outputs/{name}.json"
    change = {
        "analyses": ["identifiability"],
        "extra_outputs": {"images": 20, "jacobian_images": 8},
    }
    project.edit(f"studies/{study}.yaml", lambda document: document.update(change))

    def made() -> tuple[float, dict[str, int]]:
        project.finish(target)
        entries = read_json(project.folder / target)["extra_outputs"]
        assert entries["jacobian"]["images"] == 8 and entries["pixel_distances"]["forwarded"] == 0
        files = {
            kind: (project.folder / target).parent / one["file"] for kind, one in entries.items()
        }
        times = {kind: file.stat().st_mtime_ns for kind, file in files.items()}
        return float(entries["jacobian"]["temperature"]), times

    temperature, first = made()
    record = read_json(project.result(f"{study}/calibration/{name}.json"))
    assert temperature == record["value"] != 1
    project.edit(f"studies/{study}.yaml", lambda one: one["calibration"].update(scale=False))
    assert project.plan(target) == Counter([f"extra_outputs {study} {name}"])
    temperature, second = made()
    assert temperature == 1
    assert {kind for kind in first if second[kind] != first[kind]} == {"jacobian"}
