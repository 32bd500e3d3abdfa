"""Bad input to a real run: one clear line, early where it can be known early, no debris."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from PIL import Image
from project import Project, model


def refused(project: Project, *arguments: str) -> str:
    """The one line that a run ends with; no traceback anywhere."""
    done = project.run(*arguments)
    assert done.code != 0
    assert "Traceback" not in done.text, done.text
    lines = [line for line in done.text.splitlines() if "stamp: " in line]
    assert lines, done.text
    assert len(set(lines)) == 1, lines
    return lines[0].partition("stamp: ")[2]


@pytest.mark.parametrize(
    ("file", "change", "line"),
    [
        (
            "config.yaml",
            lambda d: d.update(studies=["small_phantoms"]),
            "unknown study 'small_phantoms' (no config/studies/small_phantoms.yaml): "
            "did you mean 'small_phantom'?",
        ),
        (
            "studies/small_phantom.yaml",
            lambda d: d.update(models=["linaer"]),
            "study 'small_phantom': unknown model 'linaer': did you mean 'linear'?",
        ),
        (
            "studies/small_phantom.yaml",
            lambda d: d["pairs"].update(max_pair=3),
            "config/studies/small_phantom.yaml: pairs: unknown key 'max_pair': "
            "did you mean 'max_pairs'?",
        ),
        (
            "datasets.yaml",
            lambda d: d.pop("mnist"),
            "config/studies/small_digits.yaml: source: unknown data set 'mnist': "
            "known: few_uci, small_phantom",
        ),
    ],
)
def test_a_mistake_in_a_file_stops_before_planning(
    project: Project, file: str, change: Any, line: str
) -> None:
    project.edit(file, change)
    done = project.run("--dry-run")
    assert done.code == 1
    said = [
        text for text in done.text.splitlines() if not text.startswith("Using workflow specific")
    ]
    assert said == [f"stamp: {line}"]


def first_image(project: Project) -> Path:
    view = pl.read_parquet(project.result("small_phantom/views/external.parquet"))
    return project.folder / view["path"][0]


@pytest.mark.parametrize("damage", ["missing", "unreadable"])
def test_a_bad_image_is_named_and_no_cache_stays(project: Project, damage: str) -> None:
    path = first_image(project)
    path.unlink() if damage == "missing" else path.write_bytes(b"no picture")
    target = "results/small_phantom/pixels/external/32-gray-bilinear.npy"
    line = refused(project, "--force", target)
    assert line.startswith(str(path.relative_to(project.folder)))
    folder = project.result("small_phantom/pixels/external")
    assert not list(folder.glob("*.part")) and not list(folder.glob(".*part"))


def test_more_pairs_than_there_are_is_an_error_that_says_how_many(project: Project) -> None:
    project.edit("studies/small_phantom.yaml", lambda study: study["pairs"].update(largest=5000))
    line = refused(project, "results/small_phantom/pairs.parquet")
    assert "temporal pairs are eligible, 5000 asked" in line


def test_more_calibration_images_than_there_are_is_an_error(project: Project) -> None:
    project.edit("studies/small_phantom.yaml", lambda s: s["calibration"].update(count=5000))
    line = refused(project, "results/small_phantom/views/source.parquet")
    assert "calibration images are there, 5000 were asked for" in line


def test_an_unknown_domain_of_a_target_is_suggested(project: Project) -> None:
    project.edit(
        "studies/small_phantom.yaml",
        lambda s: s["targets"].update(external={"dataset": "small_phantom", "domains": ["nord"]}),
    )
    line = refused(project, "results/small_phantom/views/external.parquet")
    assert line.endswith("view 'external': unknown domain 'nord': did you mean 'north'?")


def test_a_model_with_another_number_of_classes_is_named(project: Project, tmp_path: Path) -> None:
    """Weights for eleven classes in a study of ten: found at the first batch, nothing written."""
    from stamp.models.architectures import build
    from stamp.models.weights import write_weights

    write_weights(build("resnet10t", {}, 11, 1, 28), tmp_path / "eleven.safetensors", {})
    entry = model("linear", "Eleven")
    entry["load"] = {
        "source": "timm",
        "name": "resnet10t",
        "file": str(tmp_path / "eleven.safetensors"),
        "args": {"num_classes": 11},
        "preprocessing": {"size": 28, "channels": 1},
    }
    project.edit("zoo/small_digits.yaml", lambda zoo: zoo.update(eleven=entry))
    line = refused(project, "results/small_digits/logits/source/eleven.safetensors")
    assert line == "model 'eleven': outputs have shape [11], but the study has 10 classes"
    assert not list(project.result("small_digits/logits/source").glob("*eleven*"))


def test_a_label_that_no_class_has_is_named(project: Project) -> None:
    index = project.result("datasets/few_uci/index.parquet")
    from stamp.core.artifacts import table_metadata, write_table

    table = pl.read_parquet(index).with_columns(
        label=pl.when(pl.int_range(pl.len()) == 5).then(12).otherwise(pl.col("label"))
    )
    write_table(index, table, table_metadata(index))
    line = refused(project, "--force", "results/small_digits/views/uci.parquet")
    assert "label is 12, but must be 0 to 9 or empty" in line


def test_a_failed_job_keeps_its_line_in_the_log(project: Project) -> None:
    project.edit("studies/small_phantom.yaml", lambda study: study["pairs"].update(largest=5000))
    project.run("results/small_phantom/pairs.parquet")
    assert "5000 asked" in project.result("small_phantom/logs/pairs.log").read_text()


def test_a_wide_picture_is_read_like_any_other(project: Project) -> None:
    path = first_image(project)
    Image.new("RGBA", (300, 20)).save(path)
    project.finish("--force", "results/small_phantom/pixels/external/32-gray-bilinear.npy")
