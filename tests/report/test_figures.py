from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import matplotlib
import numpy as np
import polars as pl
import pytest
from figures_check import artists, axes_of, check_texts, points_of, texts_of
from scipy import stats

from figure import main
from stamp.core.artifacts import write_table
from stamp.report.figures import forest, outranks, ranks, targets
from stamp.report.outcomes import SCHEMA
from stamp.report.plot import style
from stamp.report.plot.figure_data import CORRELATIONS, FigureData
from stamp.report.wording import short_number, short_p

FIGURES = {"targets": targets, "ranks": ranks, "forest": forest, "outranks": outranks}
MARKED = ["targets", "ranks", "forest"]  # with a mark for each model
TITLES = {
    "external/north": "External hospital: north",
    "external/gaussian_blur": "External hospital: gaussian blur",
    "wild": "Photographs",
    "mean": "Mean of all targets",
}
OUTCOMES = list(TITLES)
FAMILIES = ["CNN", "ViT", "MLP", "Hybrid"]
OBJECTIVES = ["supervised", "self-supervised", "none"]


def study(
    count: int = 6,
    outcomes: list[str] | None = None,
    degenerate: tuple[int, ...] = (1,),
    excluded: tuple[int, ...] = (1, 2),
    missing: tuple[tuple[str, int], ...] = (),
    label: str = "Model {}",
    **texts: object,
) -> FigureData:
    """Tables of a made-up study; the correlations are numbers that nothing else could produce."""
    names = OUTCOMES if outcomes is None else outcomes
    rng = np.random.default_rng(3)
    keys = [f"m{i}" for i in range(count)]
    raw = rng.permutation(np.linspace(0.1, 0.9, count))
    sound = pl.Series([None if i in degenerate else float(raw[i]) for i in range(count)])
    sound = sound.cast(pl.Float64)
    scores = pl.DataFrame(
        {
            "model": keys,
            "stamp": sound,
            "raw": raw,
            "low": sound - 0.03,
            "high": sound + 0.02,
            "degenerate": [i in degenerate for i in range(count)],
            "saturated": [i == 3 for i in range(count)],
            "leakage": [False] * count,
            "temperature_bound": pl.Series(["upper" if i == 3 else None for i in range(count)]),
            "excluded": pl.Series(["by a rule" if i in excluded else None for i in range(count)]),
        },
        schema_overrides={"temperature_bound": pl.String, "excluded": pl.String},
    ).with_columns(excluded_temperature="excluded", excluded_chance="excluded")
    rows = [
        (key, name, "auroc", None if (name, i) in missing else rng.uniform(0.5, 0.9), 0.01, 100)
        for name in ["source", *names]
        for i, key in enumerate(keys)
    ]
    found = [
        {"filter": which, "outcome": name, "predictor": predictor, "n": count - start, "rho": rho}
        for which, start in (("all", 0), ("declared", 2))
        for at, name in enumerate(names)
        for predictor, rho in (
            ("stamp", 0.9 - 0.37 * at - 0.03 * start),
            ("source_metric", 0.11 * (at + start)),
        )
    ]
    correlations = pl.DataFrame(
        found,
        schema=CORRELATIONS,
    ).with_columns(p_permutation=0.0123, partial_source=-0.321, partial_source_corrected=-0.432)
    median = [None if i in degenerate else float(i + 1) for i in range(count)]
    intervals = pl.DataFrame(
        {"model": keys, "rank": median},
        schema={"model": pl.String, "rank": pl.Float64},
    ).with_columns(low=pl.max_horizontal(pl.col("rank") - 1.2, 1.0), high=pl.col("rank") + 0.6)
    models = {
        key: {
            "label": label.format(i),
            "family": FAMILIES[i % 4],
            "objective": OBJECTIVES[i % 3],
            "regime": "plain",
        }
        for i, key in enumerate(keys)
    }
    titles = {"external": "External hospital", "wild": "Photographs"}
    about = {"title": "A study", "notice": "Made up.", "task": "multilabel", "targets": titles}
    outcomes_table = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    above = pl.DataFrame({"model": keys, **dict(zip(keys, outranked(count), strict=True))})
    return FigureData(
        scores, outcomes_table, correlations, intervals, above, models, {**about, **texts}
    )


def outranked(count: int) -> np.ndarray:
    """Columns of made-up shares of draws; two models' shares add up to 1."""
    upper = np.triu(np.random.default_rng(5).uniform(0, 1, (count, count)), 1)
    return (upper + np.tril(1 - upper.T, -1) + 0.5 * np.eye(count)).T


def expected_scores(data):
    rows = data.scores.iter_rows(named=True)
    return {one["model"]: one["raw"] if one["degenerate"] else one["stamp"] for one in rows}


def test_targets_has_a_panel_for_each_outcome_in_order_with_the_mean_last():
    figure, _ = targets.draw(study())
    panels = [axes.get_label() for axes in figure.axes if axes.get_label() != "sheet"]
    assert panels == [f"outcome:{name}" for name in OUTCOMES]
    shown = texts_of(figure)
    places = [shown.index(title) for title in TITLES.values()]
    assert places == sorted(places)


def test_every_point_of_targets_is_at_its_models_score_and_value():
    missing = (("wild", 4), ("external/north", 0))
    data = study(missing=missing)
    figure, table = targets.draw(data)
    drawn = {}
    for name in OUTCOMES:
        for model, point in points_of(axes_of(figure, f"outcome:{name}")).items():
            drawn[name, model] = (point.x, point.y)
    score = expected_scores(data)
    rows = data.outcomes.filter(pl.col("outcome") != "source").drop_nulls("value")
    expected = {
        (one["outcome"], one["model"]): (score[one["model"]], one["value"])
        for one in rows.iter_rows(named=True)
    }
    assert drawn == expected
    assert len(expected) == 4 * 6 - len(missing)
    written = table.select("outcome", "model", "score", "value").iter_rows()
    assert {(a, b): (c, d) for a, b, c, d in written} == expected


def test_bars_of_targets_are_the_interval_and_standard_errors_and_all_lie_inside_the_panel():
    data = study()
    figure, _ = targets.draw(data)
    axes = axes_of(figure, "outcome:wild")
    bars, errors = artists(axes, "interval"), artists(axes, "se")
    sound = data.scores.filter(~pl.col("degenerate"))
    assert {key: tuple(line.get_xdata()) for key, line in bars.items()} == {
        model: (low, high) for model, low, high in sound.select("model", "low", "high").iter_rows()
    }
    wild = data.outcomes.filter(pl.col("outcome") == "wild")
    values = dict(wild.select("model", "value").iter_rows())
    for model, line in errors.items():
        np.testing.assert_allclose(line.get_ydata(), values[model] + np.array([-1, 1]) * 0.0196)
    assert len(errors) == 6
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    assert all(left < x < right for line in bars.values() for x in line.get_xdata())
    assert all(bottom < y < top for line in errors.values() for y in line.get_ydata())


@pytest.mark.parametrize("name", MARKED)
def test_marks_of_degenerate_and_excluded_models_are_open_and_no_others(name):
    figure, _ = FIGURES[name].draw(study(degenerate=(1,), excluded=(4,)))
    label = {"targets": "outcome:wild", "ranks": "sheet", "forest": "score"}[name]
    points = points_of(axes_of(figure, label))
    opened = {key.split(":")[-1] for key, point in points.items() if point.opened}
    assert opened == {"m1", "m4"}
    assert len({key.split(":")[-1] for key in points}) == 6


def test_rho_over_each_panel_is_the_tables_under_the_declared_rule():
    data = study()
    figure, _ = targets.draw(data)
    shown = texts_of(figure)
    for outcome, title in TITLES.items():
        at = shown.index(title)
        rows = data.correlations.filter(pl.col("outcome") == outcome)
        rho = {(a, b): c for a, b, c in rows.select("filter", "predictor", "rho").iter_rows()}
        kept, source, everyone = (
            f"{rho[one]:.2f}".replace("-", "\u2212")
            for one in (("declared", "stamp"), ("declared", "source_metric"), ("all", "stamp"))
        )
        assert shown[at + 1] == f"\u03c1 = {kept}, n = 4, p = 0.012"
        assert (
            shown[at + 2]
            == f"source metric \u03c1 = {source}; partial \u22120.32, corrected \u22120.43"
        )
        assert shown[at + 3] == f"all 6 models \u03c1 = {everyone}"


def test_an_undefined_rho_says_why():
    data = study()
    why = pl.lit("2 models are too few")
    undefined = data.correlations.with_columns(rho=pl.lit(None, pl.Float64), reason=why)
    figure, _ = targets.draw(replace(data, correlations=undefined))
    assert "\u03c1 undefined: 2 models are too few" in texts_of(figure)


def test_without_targets_the_figure_says_so_in_words():
    figure, table = targets.draw(study(outcomes=[]))
    assert [axes.get_label() for axes in figure.axes] == ["sheet"]
    assert any("no targets" in text for text in texts_of(figure))
    assert table.is_empty()
    assert "outcome" in table.columns


def test_the_mean_of_a_single_target_is_not_drawn_again():
    figure, _ = targets.draw(study(outcomes=["wild", "mean"]))
    assert [axes.get_label() for axes in figure.axes] == ["sheet", "outcome:wild"]


def test_an_outcome_that_no_model_has_says_so_in_its_panel():
    missing = tuple(("wild", i) for i in range(6))
    figure, _ = targets.draw(study(missing=missing))
    axes = axes_of(figure, "outcome:wild")
    assert "no model" in axes.texts[0].get_text()
    assert "Mean of 2 of 3 targets" in texts_of(figure)


def test_models_stand_in_the_order_of_each_column_of_the_slope_chart():
    data = study(count=8)
    figure, _ = ranks.draw(data)
    points = points_of(figure.axes[0])
    mean = data.outcomes.filter(pl.col("outcome") == "mean")
    source = data.outcomes.filter(pl.col("outcome") == "source")
    columns = {
        "score": expected_scores(data),
        "outcome": dict(mean.select("model", "value").iter_rows()),
        "source": dict(source.select("model", "value").iter_rows()),
    }
    for name, values in columns.items():
        height = {model: points[f"{name}:{model}"].y for model in values}
        assert sorted(height, key=height.get) == sorted(values, key=values.get, reverse=True)


def test_a_source_metric_beside_an_outcome_of_other_classes_is_said_to_be_over_all():
    data = study(count=8)
    assert "all classes" not in " ".join(texts_of(ranks.draw(data)[0]))
    matched = data.outcomes.filter(pl.col("outcome") == "source").with_columns(
        outcome=pl.lit("source:mean")
    )
    figure, _ = ranks.draw(replace(data, outcomes=pl.concat([data.outcomes, matched])))
    assert "all classes" in " ".join(texts_of(figure))


def test_slopes_join_the_two_marks_of_a_model_and_are_thicker_where_the_ranks_differ_more():
    figure, table = ranks.draw(study(count=12))
    points, slopes = points_of(figure.axes[0]), artists(figure.axes[0], "slope")
    errors, widths = [], []
    for one in table.iter_rows(named=True):
        line = slopes[f"score:{one['model']}"]
        ends = [points[f"{name}:{one['model']}"].y for name in ("score", "outcome")]
        assert list(line.get_ydata()) == ends
        assert (line.get_linestyle() == "-") == one["counted"]
        if one["counted"]:
            errors.append(one["error_score"])
            widths.append(line.get_linewidth())
    assert len(set(errors)) > 2
    np.testing.assert_allclose(stats.rankdata(widths), stats.rankdata(errors))


def test_ranks_are_among_counted_models_with_the_best_first_and_ties_shared():
    data = study(count=9)
    tied = data.outcomes.with_columns(pl.col("value").round(1))
    figure, table = ranks.draw(replace(data, outcomes=tied))
    counted = table.filter("counted")
    for name in ("score", "outcome", "source"):
        expected = stats.rankdata(-counted[name].to_numpy())
        np.testing.assert_array_equal(counted[f"rank_{name}"], expected)
    assert counted["rank_outcome"].n_unique() < len(counted)
    assert table.filter(~pl.col("counted"))["rank_score"].is_null().all()
    shown = texts_of(figure)
    columns = counted.select("rank_score", "rank_outcome", "rank_source")
    printed = [f"{rank:g}" for column in columns for rank in column]
    numbers = [text for text in shown if text.replace(".", "").isdigit()]
    assert sorted(numbers) == sorted(printed)


def test_without_an_outcome_ranks_are_drawn_with_their_intervals():
    data = study(outcomes=[])
    figure, table = ranks.draw(data)
    axes = axes_of(figure, "ranks")
    bars, points = artists(axes, "interval"), points_of(axes)
    for one in data.ranks.drop_nulls().iter_rows(named=True):
        assert list(bars[one["model"]].get_xdata()) == [one["low"], one["high"]]
        assert points[one["model"]].x == one["rank"]
    assert set(points) == {"m0", "m2", "m3", "m4", "m5"}
    assert "no rank: degenerate, excluded" in texts_of(figure)
    assert len(table) == 6


def test_the_forest_stands_best_first_with_the_set_aside_last_and_shows_score_and_source():
    data = study(count=7)
    figure, table = forest.draw(data)
    score = expected_scores(data)
    keys = list(score)
    order = sorted(keys, key=lambda key: (key in ("m1", "m2"), -score[key]))
    points = points_of(axes_of(figure, "score"))
    assert sorted(keys, key=lambda key: points[key].y) == order
    assert table["model"].to_list() == order
    assert {key: point.x for key, point in points.items()} == score
    source = data.outcomes.filter(pl.col("outcome") == "source")
    marks = artists(axes_of(figure, "source"), "source")
    assert {key: line.get_xdata()[0] for key, line in marks.items()} == dict(
        source.select("model", "value").iter_rows()
    )
    assert all(marks[key].get_ydata()[0] == points[key].y for key in keys)
    bars = artists(axes_of(figure, "score"), "interval")
    assert set(bars) == set(keys) - {"m1"}


def test_a_cell_is_how_often_the_row_is_above_the_column_and_the_best_stand_first():
    data = study(count=8)
    figure, table = outranks.draw(data)
    axes = axes_of(figure, "outranks")
    order = data.ranks.drop_nulls().sort("rank")["model"].to_list()
    names = [text for text in texts_of(figure) if text.startswith("Model ")]
    assert names[::2] == names[1::2] == [data.models[key]["label"] for key in order]
    drawn = axes.collections[0].get_array().filled(np.nan)
    known = {row["model"]: row for row in data.outranks.iter_rows(named=True)}
    for y, row in enumerate(order):
        for x, column in enumerate(order):
            assert drawn[y, x] == known[row][column] if x != y else np.isnan(drawn[y, x])
    first = table.row(0, named=True)
    assert (first["model"], first["other"]) == (order[0], order[1])
    assert first["above"] == known[order[0]][order[1]]


def test_of_many_models_the_best_are_drawn_and_all_are_in_the_table():
    figure, table = outranks.draw(study(count=60, degenerate=(), excluded=()))
    assert axes_of(figure, "outranks").collections[0].get_array().shape == (44, 44)
    assert len(table) == 60 * 59 / 2
    assert "60 models" in " ".join(texts_of(figure))
    assert figure.get_figheight() <= 10


@pytest.mark.parametrize("name", ["forest", "ranks"])
@pytest.mark.parametrize("outcomes", [None, []])
def test_a_row_per_model_is_drawn_of_the_best_and_the_table_has_all(name, outcomes):
    data = study(count=200, outcomes=outcomes, degenerate=(), excluded=())
    by_rank = name == "ranks" and outcomes == []
    order = data.ranks.sort("rank") if by_rank else data.scores.sort("stamp", descending=True)
    best = [data.models[key]["label"] for key in order["model"]]
    figure, table = FIGURES[name].draw(data)
    shown = texts_of(figure)
    assert set(best[:150]) <= set(shown)
    assert not set(best[150:]) & set(shown)
    assert len(table) == 200
    assert "150 of 200 models" in " ".join(" ".join(shown).split())
    assert figure.get_figheight() < 40


def test_the_forest_prints_whole_rank_intervals_and_flags_in_words():
    figure, _ = forest.draw(study())
    shown = texts_of(figure)
    assert shown.count("1\u20132") == 1  # of m0: 1 to 1.6
    assert "4\u20137" in shown  # of m5: 4.8 to 6.6
    assert shown.count("\u2013") == 1  # the degenerate one has no rank
    assert "saturated, temperature at its bound" in " ".join(shown)
    assert "degenerate, excluded" in shown
    assert "excluded" in shown


def test_a_study_without_source_metric_or_scores_is_still_drawn():
    data = study(degenerate=(0, 1, 2, 3, 4, 5))
    blind = replace(
        data,
        scores=data.scores.with_columns(raw=pl.lit(float("nan"))),
        outcomes=data.outcomes.filter(pl.col("outcome") != "source"),
    )
    for name, module in FIGURES.items():
        figure, table = module.draw(blind)
        check_texts(figure)
        assert len(table) == (0 if name in ("targets", "outranks") else 6)
    assert texts_of(forest.draw(blind)[0]).count("no score") == 6


LONG = "A network with a very long name, pretrained elsewhere and fine-tuned here, seed {}"


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"count": 2, "degenerate": (), "excluded": ()},
        {"count": 71, "degenerate": (5, 60), "excluded": (5, 20), "outcomes": ["wild"]},
        {"count": 15, "label": LONG, "title": LONG * 3, "notice": LONG * 2},
        {"outcomes": [f"external/a long name of a domain {i}" for i in range(8)] + ["mean"]},
        {"outcomes": []},
        {"outcomes": ["wild", "mean"], "notice": ""},
        {"degenerate": (0, 1, 2, 3, 4, 5)},
        {"missing": (("wild", 0), ("mean", 0), ("source", 2))},
    ],
    ids=["small", "two", "many", "long", "nine", "none", "one", "degenerate", "gaps"],
)
def test_no_text_overlaps_another_or_is_cut_off(name, options):
    check_texts(FIGURES[name].draw(study(**options))[0])


@pytest.mark.parametrize("count", [1, 3, 5])
def test_words_of_ordinary_length_are_never_shortened(count):
    for module in FIGURES.values():
        figure, _ = module.draw(study(outcomes=[f"external/d{i}" for i in range(count)]))
        assert [text for text in texts_of(figure) if "…" in text] == []


@pytest.mark.parametrize("name", FIGURES)
def test_the_notice_and_the_title_are_on_every_figure(name):
    for outcomes in (OUTCOMES, []):
        figure, _ = FIGURES[name].draw(study(outcomes=outcomes))
        assert {"A study", "Made up."} <= set(texts_of(figure))


def test_supervised_keeps_its_colour_whatever_else_there_is():
    alone = style.key_of(["supervised"], ["CNN"]).colours["supervised"]
    among = style.key_of(["a", "supervised", "self-supervised", "z"], ["CNN"]).colours
    assert among["supervised"] == alone
    assert list(among) == ["supervised", "self-supervised", "a", "z"]
    assert len(set(style.key_of(map(str, range(10)), []).colours.values())) == 10


def test_shortened_keeps_both_ends_and_fits():
    for width in (0.3, 0.8, 1.5):
        short = style.shortened(LONG, width, 7)
        assert style.width_of(short, 7) <= width
        head, tail = short.split("…")
        assert LONG.startswith(head) and LONG.endswith(tail) and len(head) - len(tail) in (0, 1)
    assert style.shortened("short", 2, 7) == "short"


def test_wrapped_loses_no_word_and_fits():
    lines = style.wrapped(LONG, 1.4, 7)
    assert " ".join(lines).split() == LONG.split()
    assert all(style.width_of(line, 7) <= 1.4 for line in lines)


def test_numbers_are_printed_as_a_reader_expects():
    assert short_number(-0.456) == "\u22120.46"
    assert short_number(None) == "undefined"
    assert short_p(0.0123) == "p = 0.012"
    assert short_p(0.0001) == "p < 0.001"


def job(folder, data, name):
    """What Snakemake gives to the script, with the tables of a study on disk."""
    paths = {
        "scores": folder / "scores.parquet",
        "outcomes": folder / "outcomes.parquet",
        "correlations": folder / "correlations.csv",
        "ranks": folder / "ranks.csv",
        "outranks": folder / "outranks.csv",
    }
    for key, path in paths.items():
        write_table(path, getattr(data, key), {"study": "made-up"})
    ends = {end: folder / "figures" / f"{name}.{end}" for end in ("png", "pdf", "csv")}
    return SimpleNamespace(
        input=SimpleNamespace(**paths),
        output=SimpleNamespace(**ends),
        params=SimpleNamespace(models=data.models, texts=data.texts),
        wildcards=SimpleNamespace(study="made-up", figure=name),
    )


def written(folder):
    return {path.name: path.read_bytes() for path in (folder / "figures").iterdir()}


@pytest.mark.parametrize("name", FIGURES)
def test_the_script_writes_png_pdf_and_table_whole(name, tmp_path):
    main(job(tmp_path, study(), name))
    found = written(tmp_path)
    assert set(found) == {f"{name}.png", f"{name}.pdf", f"{name}.csv"}
    png, pdf = found[f"{name}.png"], found[f"{name}.pdf"]
    assert png.startswith(b"\x89PNG") and png.endswith(b"IEND\xaeB`\x82")
    assert int.from_bytes(png[16:20]) == 1400
    assert pdf.startswith(b"%PDF") and pdf.rstrip().endswith(b"%%EOF")
    assert b"CreationDate" not in pdf


def test_the_same_tables_give_the_same_bytes_whatever_the_users_settings_are(tmp_path):
    one = job(tmp_path, study(outcomes=["wild"]), "targets")
    main(one)
    first = written(tmp_path)
    with matplotlib.rc_context({"font.size": 3, "lines.color": "red", "text.hinting": "default"}):
        main(one)
        assert matplotlib.rcParams["font.size"] == 3
    assert written(tmp_path) == first


def test_the_script_reads_tables_without_any_row_or_value(tmp_path):
    main(job(tmp_path, study(outcomes=[], degenerate=(0, 1, 2, 3, 4, 5)), "forest"))
    table = pl.read_csv(tmp_path / "figures" / "forest.csv")
    assert len(table) == 6
    assert table["rank"].is_null().all()
