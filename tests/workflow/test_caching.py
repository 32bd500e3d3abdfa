"""Which jobs does a change schedule? Asked of real Snakemake, answered as an exact set."""

from __future__ import annotations

import ast
import os
from collections import Counter
from pathlib import Path

import pytest
from project import Project, model

AGGREGATES = ["collect", "correlate", "main_table", "leaderboard"]
FIGURES = [f"figure {{study}} {name}" for name in ("forest", "outranks", "ranks", "targets")]
PHANTOM_MODELS = ["few", "linear", "mixer", "noisy"]


def aggregates(study: str = "small_phantom", first: str = "collect") -> list[str]:
    """The jobs of a study that see all models, from one of them on."""
    rules = AGGREGATES[AGGREGATES.index(first) :]
    return [f"{rule} {study}" for rule in rules] + [one.format(study=study) for one in FIGURES]


def pages(*studies: str) -> list[str]:
    """The pages of studies, and the index of all pages."""
    return [*(f"page {study}" for study in studies), "index_page"]


def jobs(*names: str | list[str]) -> Counter[str]:
    flat = [one for name in names for one in ([name] if isinstance(name, str) else name)]
    return Counter(flat)


def library(project: Project, name: str = "") -> Path:
    return project.folder / "workflow" / "scripts" / "stamp" / name


def change(project: Project, module: str, function: str) -> None:
    """Put a statement more into a function of the library."""
    path = library(project, module)
    tree = ast.parse(path.read_text())
    body = next(node.body for node in tree.body if getattr(node, "name", "") == function)
    body.insert(1, ast.parse("edited = True").body[0])
    path.write_text(ast.unparse(ast.fix_missing_locations(tree)))


def reworded(tree: ast.Module) -> ast.Module:
    """A module whose docstrings all say something else."""
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if documented and ast.get_docstring(node) is not None:
            node.body[0] = ast.Expr(ast.Constant("Said in other words."))
    return ast.fix_missing_locations(tree)


def test_nothing_changed_means_no_job(project: Project) -> None:
    assert project.plan() == jobs()


def test_touching_every_file_means_no_job(project: Project) -> None:
    for number, path in enumerate(sorted(project.folder.rglob("*"))):
        if path.is_file() and path.stat().st_nlink == 1 and ".snakemake" not in path.parts[:-1]:
            os.utime(path, (2_000_000_000 + number, 2_000_000_000 + number))
    assert project.plan() == jobs()


def test_other_comments_and_another_format_mean_no_job(project: Project) -> None:
    for path in library(project).parent.rglob("*.py"):
        path.write_text("# A comment.\n" + ast.unparse(ast.parse(path.read_text())) + "\n")
    assert project.plan() == jobs()


def test_reworded_docstrings_mean_no_job(project: Project) -> None:
    for path in library(project).parent.rglob("*.py"):
        path.write_text(ast.unparse(reworded(ast.parse(path.read_text()))) + "\n")
    assert project.plan() == jobs()


def test_a_renamed_module_means_no_job(project: Project) -> None:
    """Every model runs on a device: this one is in the code of all training and forward passes."""
    library(project, "core/device.py").rename(library(project, "core/processor.py"))
    for folder in ("workflow", "rules"):
        for path in (project.folder / folder).rglob("*.*"):
            if path.suffix in (".py", ".smk"):
                path.write_text(
                    path.read_text().replace("stamp.core.device", "stamp.core.processor")
                )
    assert project.plan() == jobs()


def test_a_function_that_no_job_uses_means_no_job(project: Project) -> None:
    path = library(project, "scoring/stamp.py")
    path.write_text(path.read_text() + "\n\ndef unused():\n    return 1\n")
    assert project.plan() == jobs()


def test_a_reordered_zoo_means_no_job(project: Project) -> None:
    zoo = project.read("zoo/small_phantom.yaml")
    project.write("zoo/small_phantom.yaml", dict(reversed(zoo.items())))
    assert project.plan() == jobs()


def test_another_device_or_thread_count_means_no_job(project: Project) -> None:
    project.edit("config.yaml", lambda config: config.update(device="auto", threads=2))
    assert project.plan() == jobs()


def test_a_model_added_runs_its_branch_and_the_aggregates(project: Project) -> None:
    project.edit("zoo/small_phantom.yaml", lambda zoo: zoo.update(new=model("linear", "New")))
    branch = [
        "train small_phantom new",
        "logits small_phantom source new",
        "logits small_phantom external new",
        "calibrate small_phantom new",
        "score small_phantom new",
        "class_matched_score small_phantom external new",
        "evaluate small_phantom source new",
        "evaluate small_phantom external new",
        "pair_distances small_phantom",
        "thumbnails small_phantom",
    ]
    assert project.plan() == jobs(branch, aggregates(), pages("small_phantom"))


def test_a_model_removed_runs_the_aggregates_only(project: Project) -> None:
    project.edit("zoo/small_phantom.yaml", lambda zoo: zoo.pop("few"))
    ends = ["pair_distances small_phantom", "thumbnails small_phantom", *pages("small_phantom")]
    assert project.plan() == jobs(aggregates(), ends)


def test_a_relabelled_model_redraws_figures_and_tables_only(project: Project) -> None:
    texts = {"label": "F", "family": "other", "backbone": "B"}
    project.edit("zoo/small_phantom.yaml", lambda zoo: zoo["few"].update(texts))
    ends = ["pair_distances small_phantom", *pages("small_phantom")]
    assert project.plan() == jobs(aggregates(first="leaderboard"), ends)


def test_an_edited_figure_is_drawn_anew_and_nothing_else(project: Project) -> None:
    change(project, "report/figures/forest.py", "draw")
    both = [f"figure {study} forest" for study in ("small_phantom", "small_digits")]
    assert project.plan() == jobs(both)


@pytest.mark.parametrize("name", ["study.html", "page.css", "page.js"])
def test_an_edited_template_makes_the_pages_anew_and_nothing_else(
    project: Project, name: str
) -> None:
    file = library(project, f"report/page/templates/{name}")
    file.write_text(file.read_text() + "\n")
    assert project.plan() == jobs(pages("small_phantom", "small_digits"))


def test_images_taken_off_a_page_make_it_anew_and_nothing_else(project: Project) -> None:
    project.edit("studies/small_phantom.yaml", lambda study: study.update(show_images=False))
    assert project.plan() == jobs(pages("small_phantom"))


def test_edited_scoring_code_runs_scores_onward_and_no_forward_pass(project: Project) -> None:
    change(project, "scoring/stamp.py", "stamp")
    scores = [f"score small_phantom {key}" for key in PHANTOM_MODELS]
    scores += [f"class_matched_score small_phantom external {key}" for key in PHANTOM_MODELS]
    scores += [f"score small_digits {key}" for key in ("few", "linear")]
    both = ("small_phantom", "small_digits")
    ends = [job for study in both for job in aggregates(study)]
    ends += [f"{rule} {study}" for rule in ("pair_distances", "thumbnails") for study in both]
    assert project.plan() == jobs(scores, ends, pages(*both))


def test_edited_extraction_code_runs_every_forward_pass_but_no_training(project: Project) -> None:
    change(project, "inference/logits.py", "extract_logits")
    planned = project.plan()
    assert {job.split()[0] for job in planned} >= {"logits", "score", "evaluate"}
    assert sum(count for job, count in planned.items() if job.startswith("logits")) == 4 * 2 + 2 * 3
    assert not any(job.startswith(("train", "pixels", "pairs")) for job in planned)


def test_an_edited_model_loader_concerns_extraction_and_training(project: Project) -> None:
    change(project, "models/loaders/train.py", "load")
    rules = {job.split()[0] for job in project.plan()}
    assert {"train", "logits"} <= rules
    assert not rules & {"make_dataset", "pairs", "pixels", "view", "source_view"}


def test_an_edited_adapter_remakes_its_own_data_set_only(project: Project) -> None:
    change(project, "data/adapters/uci_digits.py", "build")
    planned = project.plan()
    assert planned["make_dataset few_uci"] == 1
    assert not any("small_phantom" in job for job in planned)
    assert not any(job.startswith("train") for job in planned)


def test_a_target_added_runs_its_forward_passes_and_evaluations(project: Project) -> None:
    target = {"dataset": "small_phantom", "domains": ["north"]}
    project.edit("studies/small_phantom.yaml", lambda s: s["targets"].update(again=target))
    branch = ["view small_phantom again", "pixels small_phantom again 32-gray-bilinear"]
    branch += [f"logits small_phantom again {key}" for key in PHANTOM_MODELS]
    branch += [f"evaluate small_phantom again {key}" for key in PHANTOM_MODELS]
    assert project.plan() == jobs(branch, aggregates(), pages("small_phantom"))


def test_a_lower_pair_count_needs_no_forward_pass(project: Project) -> None:
    project.edit("studies/small_phantom.yaml", lambda study: study["pairs"].update(n_pairs=40))
    scores = [f"score small_phantom {key}" for key in PHANTOM_MODELS]
    scores += [f"class_matched_score small_phantom external {key}" for key in PHANTOM_MODELS]
    shown = ["pair_distances small_phantom", "thumbnails small_phantom", *pages("small_phantom")]
    assert project.plan() == jobs(scores, shown, aggregates())


def test_another_estimator_needs_no_forward_pass(project: Project) -> None:
    project.edit("studies/small_phantom.yaml", lambda study: study.update(estimator="sampled"))
    scores = [f"score small_phantom {key}" for key in PHANTOM_MODELS]
    scores += [f"class_matched_score small_phantom external {key}" for key in PHANTOM_MODELS]
    shown = ["pair_distances small_phantom", "thumbnails small_phantom", *pages("small_phantom")]
    assert project.plan() == jobs(scores, shown, aggregates())


def test_another_exclusion_rule_concerns_the_aggregates_only(project: Project) -> None:
    project.edit("studies/small_digits.yaml", lambda s: s["calibration"].update(exclude="chance"))
    assert project.plan() == jobs(aggregates("small_digits"), pages("small_digits"))


@pytest.mark.parametrize("name", ["pixels/source/32-gray-bilinear.npy", "views/source.parquet"])
def test_a_lost_intermediate_file_is_not_missed_while_its_results_stand(
    project: Project, name: str
) -> None:
    project.result(f"small_phantom/{name}").unlink()
    assert project.plan() == jobs()


def test_precomputed_logits_need_no_pixels_for_extra_outputs(project: Project) -> None:
    """What they can't give has a reason in the manifest: the jobs are planned like any model's."""
    (project.folder / "own.csv").write_text("image\n")
    own = {**model("linear", "Own"), "load": {"source": "logits", "file": "own.csv"}}
    project.edit("zoo/small_digits.yaml", lambda zoo: zoo.update(own=own))
    project.edit("studies/small_digits.yaml", lambda study: study.update(analyses=["baselines"]))
    planned = project.plan()
    assert planned["extra_outputs small_digits own"] == 1
    assert planned["target_embeddings small_digits own"] == 1
    assert not any(job.startswith(("pixels", "train")) for job in planned)


def test_what_makes_planning_faster_changes_no_plan(project: Project) -> None:
    faster = project.run("-n", "--forceall")
    conda = project.run("-n", "--forceall", "--software-deployment-method", "conda")
    assert "conda" in conda.text and conda.code  # is looked for where it is asked for: none is here
    speed = project.folder / "workflow" / "scripts" / "stamp" / "core" / "snakemake_speed.py"
    speed.write_text("def plan_faster(): pass\n\n\ndef start_without_limit(workflow): pass\n")
    plain = project.run("-n", "--forceall")
    assert (plain.code, faster.code) == (0, 0)
    assert faster.jobs == plain.jobs and len(plain.jobs) > 50
