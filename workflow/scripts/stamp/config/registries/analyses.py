"""The analyses that a study can ask for by name, one line each.

An analysis is the folder of its name in ``stamp.report.analyses``: its table, its caption and,
where it has them, its figure and its profile of each model. Planning imports only this module.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Analysis:
    """What an analysis takes beside the scores and outcomes of a study.

    ``reads`` names further input files of the rule ``analysis``. ``profile`` is the analysis whose
    profile of each model it reads, most often itself. ``extra_outputs`` are the kinds of
    ``registries.extra_outputs`` that the profile needs; ``stress_tests`` says whether it needs
    those instead. ``options`` are keys of the study's ``statistics`` that only this analysis takes.
    """

    reads: tuple[str, ...] = ()
    profile: str = ""
    extra_outputs: tuple[str, ...] = ()
    stress_tests: bool = False
    options: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """The kinds of files that it reads beside scores and outcomes."""
        return (*self.reads, *(("profiles",) if self.profile else ()))


ANALYSES: dict[str, Analysis] = {
    "ablation": Analysis(),
    "alarm": Analysis(options=("delta",)),
    "backbones": Analysis(options=("selections",)),
    # the extra outputs that it reads follow from the study's metrics
    "baselines": Analysis(reads=("metrics",), options=("mixed",)),
    "bounds": Analysis(profile="bounds"),
    "corruptions": Analysis(reads=("evaluations",)),
    "cosines": Analysis(profile="cosines", extra_outputs=("embeddings",)),
    "cost": Analysis(reads=("costs", "metrics")),
    "n_pairs": Analysis(reads=("n_pairs",)),
    "failures": Analysis(),
    "families": Analysis(),
    "gaps": Analysis(profile="gaps"),
    "identifiability": Analysis(
        profile="identifiability", extra_outputs=("perturbations", "jacobian", "pixel_distances")
    ),
    "pair_kinds": Analysis(reads=("metrics",)),
    "layers": Analysis(profile="layers", extra_outputs=("embeddings",)),
    "leave_one_out": Analysis(),
    "motif": Analysis(profile="layers", extra_outputs=("embeddings",)),
    "nuisance": Analysis(
        profile="nuisance",
        extra_outputs=("composite", "flip", "rotation", "brightness", "contrast", "crop"),
    ),
    "objectives": Analysis(),
    "ordering": Analysis(profile="ordering", extra_outputs=("composite",)),
    "partials": Analysis(),
    "power": Analysis(),
    "pretraining": Analysis(),
    "probit": Analysis(options=("equivalence",)),
    "regimes": Analysis(),
    "regret": Analysis(reads=("metrics",)),
    "residuals": Analysis(),
    "robustness": Analysis(profile="robustness", stress_tests=True),
    "seeds": Analysis(profile="seeds"),
    "strata": Analysis(reads=("evaluations",)),
    "temperature": Analysis(reads=("calibrations",)),
}
