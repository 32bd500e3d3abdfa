"""What keeps studies of many models cheap: what aggregates read, and what is told before a run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from project import DIGITS, Project

PER_IMAGE = re.compile(r"results/\w+/(logits|predictions|pixels|backbone_embeddings)/")


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A study with all kinds of aggregates, nothing run."""
    study = {**DIGITS, "analyses": ["baselines", "cost", "seeds", "n_pairs"]}
    return Project.create(tmp_path_factory.mktemp("zoo") / "project", {"small_digits": study})


def planned(text: str) -> Iterator[tuple[str, dict[str, str], list[str]]]:
    """The rule, wildcards and inputs of each job of a dry run."""
    for block in re.split(r"\n(?=(?:local)?rule \w+:\n)", text)[1:]:
        rule = re.match(r"(?:local)?rule (\w+):", block)[1]  # type: ignore[index]
        told = re.search(r"^ +wildcards: (.*)$", block, re.MULTILINE)
        parts = (one.partition("=") for one in (told[1].split(", ") if told else ()))
        inputs = re.search(r"^ +input: (.*)$", block, re.MULTILINE)
        yield (
            rule,
            {name: value for name, _, value in parts},
            inputs[1].split(", ") if inputs else [],
        )


def test_what_sees_all_models_reads_nothing_that_has_a_row_per_image_and_output(
    fresh: Project,
) -> None:
    """Neither the script nor Snakemake, which reads every input for its checksum."""
    jobs = list(planned(fresh.finish("--dry-run").text))
    rules = {rule for rule, _, _ in jobs}
    assert {"agreement_on_the_line", "timings", "page", "correlate", "analysis"} <= rules
    together = [job for job in jobs if not {"model", "view", "backbone"} & set(job[1])]
    for rule, _, inputs in together:
        assert not [one for one in inputs if PER_IMAGE.match(one)], rule
    own = {rule: inputs for rule, wildcards, inputs in jobs if "model" in wildcards}
    assert any(PER_IMAGE.match(one) for one in own["metrics"])
    decisions = next(inputs for rule, _, inputs in jobs if rule == "agreement_on_the_line")
    assert {Path(one).parent.name for one in decisions} == {"decisions", "views"}


def test_caches_that_do_not_fit_are_refused_before_anything_runs(fresh: Project) -> None:
    many = 10**12
    fresh.edit("datasets.yaml", lambda one: one["few_uci"].update(images={"test": many}))
    refused = fresh.run()
    fresh.edit("datasets.yaml", lambda one: one["few_uci"].pop("images"))
    assert refused.code != 0
    line = next(line for line in refused.text.splitlines() if "do not fit" in line)
    assert line.startswith("stamp: pixel caches: 784")
    assert "free on" in line and "Traceback" not in refused.text
    assert not list(fresh.folder.glob("results/**/*.parquet"))


def test_what_will_be_decoded_is_said_before_the_first_image(fresh: Project) -> None:
    done = fresh.finish("results/small_digits/pixels/uci/28-gray-bilinear.npy")
    told = [line for line in done.text.splitlines() if line.startswith("stamp: pixel caches: ")]
    assert len(told) == 1 and "free on" in told[0] and "small_digits/uci" in told[0]
    costs = fresh.stamp("cost").text
    assert re.search(r"^small_digits +2 +none", costs, re.MULTILINE)
    assert "enough" in costs
