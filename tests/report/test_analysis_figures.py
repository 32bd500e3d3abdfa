"""The figures of all analyses, drawn as large as the paper's studies and of awkward ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks.made_up import study
from benchmarks.made_up_profiles import profiles
from figures_check import check_texts, texts_of
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from stamp.config.plan import read_plan
from stamp.config.registries.analyses import ANALYSES
from stamp.report import analyses
from stamp.report.analysis import AnalysisData
from stamp.report.plot import style
from stamp.report.wording import inside, models_text, short_number

FOLDER = Path(analyses.__file__).parent
DRAWN = [name for name in ANALYSES if (FOLDER / name / "figure.py").is_file()]
LONG = "A network with a very long name, pretrained elsewhere and fine-tuned here, seed {}"
DRAWS = 60
HEATED = ("heat", "raw", "normalised")  # frames that are heat maps


def like(name: str, seed: int) -> AnalysisData:
    """Made-up numbers of a configured study's own models and targets, with a missing outcome.

    A target's title ends in a domain's key, as where each domain is an outcome.
    """
    own = read_plan([name]).studies[name]
    data = study(len(own.models), len(own.targets), DRAWS, DRAWS, seed)
    keys, targets = data.scores["model"], data.texts["targets"]
    titles = [target.title for target in own.targets.values()]
    titles[-1] += ": north_1"
    texts = {"title": own.title, "notice": own.notice, "task": own.task}
    gap = (pl.col("outcome") == "target_2") & (pl.col("model") == keys[8])
    return replace(
        data,
        outcomes=data.outcomes.with_columns(value=pl.when(~gap).then("value")),
        models=dict(zip(keys, own.described_models.values(), strict=True)),
        texts={**data.texts, **texts, "targets": dict(zip(targets, titles, strict=True))},
    )


def awkward() -> AnalysisData:
    """Nine models, each of its own family, and one target; every name is far too long."""
    data = study(9, 1, DRAWS, DRAWS, seed=4)
    models = {
        key: {**one, "label": LONG.format(at), "family": LONG.format(at), "backbone": LONG}
        for at, (key, one) in enumerate(data.models.items())
    }
    texts = {"title": LONG * 2, "notice": LONG, "targets": {"target_1": LONG}}
    return replace(data, models=models, texts={**data.texts, **texts})


def changed(models: int, targets: int, **columns: object) -> AnalysisData:
    """A made-up study with some columns of its scores set for all models."""
    data = study(models, targets, DRAWS, DRAWS, seed=5)
    literals = {name: pl.lit(value) for name, value in columns.items()}
    return replace(data, scores=data.scores.with_columns(**literals))


def without_targets() -> AnalysisData:
    data = study(12, 2, DRAWS, DRAWS, seed=6)
    outcomes = data.outcomes.filter(pl.col("outcome") == "source")
    return replace(data, outcomes=outcomes, texts={**data.texts, "targets": {}})


STUDIES = {
    "medical": lambda: like("medical", 0),
    "natural": lambda: like("natural", 2),
    "awkward": awkward,
    "many": lambda: changed(60, 5),
    "two": lambda: changed(2, 2),
    "excluded": lambda: changed(
        6, 2, excluded="a rule", excluded_temperature="a rule", excluded_chance="a rule"
    ),
    "degenerate": lambda: changed(6, 1, degenerate=True, stamp=None),
    "without targets": without_targets,
}
FULL = ("medical", "natural", "awkward", "many")  # with models enough for every number


@cache
def _study(which: str) -> AnalysisData:
    return STUDIES[which]()


@cache
def tabled(name: str, which: str) -> tuple[AnalysisData, pl.DataFrame]:
    """What an analysis of a study is made from, and its table."""
    data = _study(which)
    if profile := ANALYSES[name].profile:
        data = replace(data, profiles=profiles(profile, data.scores))
    return data, import_module(f"stamp.report.analyses.{name}.table").table(data)


@cache
def drawn(name: str, which: str) -> Figure:
    data, table = tabled(name, which)
    models = import_module(f"stamp.report.analyses.{name}.table").models(data)
    draw = import_module(f"stamp.report.analyses.{name}.figure").draw
    return draw(table, models, data.texts)


def filled(figure: Figure) -> bool:
    """Whether there is more than words: some analyses need more models, or other pairs."""
    return len(figure.axes) > 1


@pytest.mark.parametrize("which", STUDIES)
@pytest.mark.parametrize("name", DRAWN)
def test_no_text_overlaps_another_or_is_cut_off(name: str, which: str) -> None:
    check_texts(drawn(name, which))


@pytest.mark.parametrize("which", STUDIES)
@pytest.mark.parametrize("name", ANALYSES)
def test_any_study_has_a_whole_sentence_for_every_analysis(name: str, which: str) -> None:
    text = import_module(f"stamp.report.analyses.{name}.table").sentence(tabled(name, which)[1])
    assert text.endswith(".") and "None" not in text and "nan" not in text


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_of_a_study_of_the_papers_size_fits_a_page(name: str) -> None:
    for which in ("medical", "natural"):
        assert drawn(name, which).get_figheight() <= 10


def test_the_paper_sized_studies_draw_every_analysis_that_their_pairs_allow() -> None:
    empty = {name for name in DRAWN if not filled(drawn(name, "medical"))}
    assert empty == {"pair_kinds"}  # the made-up study has one kind of pairs


@pytest.mark.parametrize("name", DRAWN)
def test_no_name_of_the_configured_zoos_and_targets_is_shortened(name: str) -> None:
    for which in ("medical", "natural"):
        assert [text for text in texts_of(drawn(name, which)) if "…" in text] == []


@pytest.mark.parametrize("which", FULL)
@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_says_how_many_models_it_is_over(name: str, which: str) -> None:
    figure = drawn(name, which)
    words = " ".join(texts_of(figure))
    assert not filled(figure) or re.search(r"n = \d+|\b\d+ models", words), words


@pytest.mark.parametrize("name", DRAWN)
def test_a_statement_such_as_n_is_4_is_not_broken_over_two_lines(name: str) -> None:
    for which in STUDIES:
        found = texts_of(drawn(name, which))
        assert [text for text in found if re.search(r"(^[=<%])|([=<]$)", text.strip())] == []


@pytest.mark.parametrize("name", DRAWN)
def test_no_number_is_minus_zero(name: str) -> None:
    for which in STUDIES:
        found = " ".join(texts_of(drawn(name, which)))
        assert not re.search(r"[-\u2212]0?\.0+(?!\d)", found)


@pytest.mark.parametrize("name", DRAWN)
def test_a_domains_key_is_written_as_words(name: str) -> None:
    words = " ".join(texts_of(drawn(name, "medical")))
    assert "north_1" not in words


def cells(axes: Axes) -> Iterator[tuple[str, float]]:
    """Every text that stands on a coloured cell, with WCAG's contrast of the two."""

    def luminance(colour: object) -> float:
        shares = np.array(to_rgb(colour))
        linear = np.where(shares <= 0.03928, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    for mesh in axes.collections:
        shades = mesh.get_facecolor()[~np.ma.getmaskarray(mesh.get_array()).ravel()]
        for text, shade in zip(axes.texts, shades, strict=False):  # more texts may follow
            light = sorted(map(luminance, (text.get_color(), shade)))
            yield text.get_text(), (light[1] + 0.05) / (light[0] + 0.05)


@pytest.mark.parametrize("name", ["baselines", "layers"])
def test_numbers_on_coloured_cells_can_be_read(name: str) -> None:
    figure = drawn(name, "medical")
    heated = [axes for axes in figure.axes if axes.get_label().partition(":")[0] in HEATED]
    found = [pair for axes in heated for pair in cells(axes)]
    assert len(found) > 100
    assert [pair for pair in found if pair[1] < 4] == []


@pytest.mark.parametrize("name", DRAWN)
def test_every_frame_has_something_in_it(name: str) -> None:
    for which in FULL:
        frames = [axes for axes in drawn(name, which).axes if axes.get_label() != "sheet"]
        empty = [axes.get_label() for axes in frames if not axes.has_data() and not axes.texts]
        assert empty == []


def test_a_pdf_keeps_its_words_as_text_in_embedded_fonts(tmp_path: Path) -> None:
    style.save(drawn("ablation", "awkward"), tmp_path / "one.png", tmp_path / "one.pdf")
    pdf = (tmp_path / "one.pdf").read_bytes()
    assert b"/FontFile2" in pdf and b"/ToUnicode" in pdf
    assert b"/Type3" not in pdf


def test_the_zoos_ways_of_writing_an_objective_share_its_colour() -> None:
    zoos = (
        ["none (linear head)", "self-supervised", "supervised"],
        ["CE-Supervised", "Hybrid", "SSL", "TXV"],
        ["SSL", "Supervised"],
    )
    keys = [style.key_of(names, []).colours for names in zoos]
    assert [list(key)[:2] for key in keys] == [
        ["supervised", "self-supervised"],
        ["CE-Supervised", "SSL"],
        ["Supervised", "SSL"],
    ]
    assert len({tuple(key.values())[:2] for key in keys}) == 1


def test_words_of_numbers_are_what_a_reader_expects() -> None:
    assert short_number(-0.001) == "0.00"
    assert short_number(-0.006) == "\u22120.01"
    assert inside("Mean of targets") == "mean of targets"
    assert inside("MIMIC-CXR") == "MIMIC-CXR"
    assert models_text(pl.Series([7, 7])) == "7 models"
    assert models_text(pl.Series([9, None, 7])) == "7 to 9 models"


@pytest.mark.parametrize("name", ANALYSES)
def test_every_analysis_has_a_caption_of_its_own_in_the_report(name: str) -> None:
    assert len((FOLDER / name / "caption.rst").read_text().split()) > 15
