"""The large zoos are what their generator writes, valid, varied, and drawn by the seed alone."""

from __future__ import annotations

from collections import Counter

import pytest
from benchmarks import ROOT, recipes

from stamp.config.plan import read_plan
from stamp.models.architectures import build


@pytest.mark.parametrize("study", recipes.SIZES)
def test_the_zoo_in_the_repository_is_that_of_the_generator(study: str) -> None:
    text = (ROOT / "config" / "zoo" / f"{study}_large.yaml").read_text()
    assert text == recipes.text(study, recipes.MODELS, 0)
    assert recipes.text(study, recipes.MODELS, 1) != text


def test_a_smaller_zoo_is_the_beginning_of_a_larger_one() -> None:
    few, many = recipes.zoo("digits", 10), recipes.zoo("digits", 40)
    assert list(many.items())[:10] == list(few.items())


@pytest.mark.parametrize("study", recipes.SIZES)
def test_every_part_of_a_recipe_varies_and_every_kind_of_network_is_there(study: str) -> None:
    entries = list(recipes.zoo(study).values())
    kinds = Counter(entry["label"].rpartition(" ")[0] for entry in entries)
    assert set(kinds) == {kind.label for kind in recipes.ARCHITECTURES}
    for key in ("fraction", "augment", "label_noise", "weight_decay", "mixup", "epochs"):
        assert len({entry["load"][key] for entry in entries}) > 1


@pytest.mark.parametrize("study", recipes.SIZES)
def test_every_network_can_be_built_at_every_width(study: str) -> None:
    for kind in recipes.ARCHITECTURES:
        for width in recipes.WIDTHS:
            arguments = kind.arguments(width, recipes.SIZES[study])
            build(kind.name, arguments, 10, 1, recipes.SIZES[study])


def test_the_large_studies_are_the_embedded_ones_with_another_zoo() -> None:
    for name in recipes.SIZES:
        plan = read_plan([name, f"{name}_large"])
        small, large = plan.studies[name], plan.studies[f"{name}_large"]
        for part in ("task", "classes", "source", "pairs", "calibration", "targets"):
            assert getattr(small, part) == getattr(large, part), part
        assert len(large.models) == recipes.MODELS
