"""A new analysis is a folder and a line of the registry, and nothing else."""

from __future__ import annotations

from collections import Counter

from project import Project

TABLE = '''
"""How many models a study has."""

import polars as pl

TABLE = {"models": pl.Int64}
MODELS = {"model": pl.String}


def table(data):
    return pl.DataFrame({"models": [len(data.scores)]}, schema=TABLE)


def models(data):
    return data.scores.select("model")


def sentence(table):
    return f"{table['models'][0]} models."
'''
FIGURE = '''
"""The number of models in words."""

from stamp.report.plot import style


def draw(table, models, texts):
    figure, page = style.sheet(1.0)
    style.write(page, 0.1, 0.1, f"{len(models)} models", style.BODY)
    return figure
'''


def test_a_folder_and_a_line_in_the_registry_are_planned_and_run(project: Project) -> None:
    stamp = project.folder / "workflow/scripts/stamp"
    folder = stamp / "report/analyses/made_up"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "table.py").write_text(TABLE)
    (folder / "figure.py").write_text(FIGURE)
    (folder / "caption.rst").write_text("How many models there are.\n")
    registry = stamp / "config/registries/analyses.py"
    first = '    "ablation": Analysis(),\n'
    assert registry.read_text().count(first) == 1
    text = registry.read_text().replace(first, f'{first}    "made_up": Analysis(),\n')
    registry.write_text(text)
    assert project.plan() == Counter()
    project.edit("studies/small_phantom.yaml", lambda study: study.update(analyses=["made_up"]))
    added = ["analysis small_phantom made_up", "analysis_figure small_phantom made_up"]
    added += ["page small_phantom", "index_page"]
    assert project.plan() == Counter(added)
    project.finish()
    results = project.folder / "results/small_phantom"
    assert (results / "analyses/made_up.txt").read_text() == "4 models.\n"
    assert (results / "figures/made_up.png").stat().st_size > 1000
    assert project.plan() == Counter()
