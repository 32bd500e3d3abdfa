"""The further analyses of a study, and the files that each reads beside scores and outcomes.

Named here as text, so that planning imports no analysis. An analysis is the module of its name in
``stamp.report.analysis``; a figure is drawn of it where ``stamp.report.figures`` has a module of that name.
"""

from __future__ import annotations

ANALYSES: dict[str, tuple[str, ...]] = {
    "ablation": (),
    "alarm": (),
    "backbones": (),
    "baselines": ("metrics",),
    "bounds": ("profiles",),
    "corruptions": ("evaluations",),
    "cost": ("costs", "metrics"),
    "n_pairs": ("n_pairs",),
    "failures": (),
    "families": (),
    "gaps": ("profiles",),
    "identifiability": ("profiles",),
    "pair_kinds": ("metrics",),
    "layers": ("profiles",),
    "leave_one_out": (),
    "motif": ("profiles",),
    "nuisance": ("profiles",),
    "objectives": (),
    "ordering": ("profiles",),
    "partials": (),
    "power": (),
    "probit": (),
    "regimes": (),
    "residuals": (),
    "seeds": ("profiles",),
    "strata": ("evaluations",),
    "temperature": ("calibrations",),
}

# The extra inference outputs that an analysis reads, by its name; kinds are in `stamp.config.extra_outputs`.
# What `baselines` reads follows from the study's metrics.
PASSES: dict[str, tuple[str, ...]] = {
    "identifiability": ("perturbations", "jacobian", "pixel_distances"),
    "layers": ("embeddings",),
    "motif": ("embeddings",),
    "nuisance": ("composite", "flip", "rotation", "brightness", "contrast", "crop"),
    "ordering": ("composite",),
}

# Keys of a study's ``statistics`` that only these analyses take.
OPTIONS: dict[str, tuple[str, ...]] = {
    "alarm": ("delta",),
    "baselines": ("mixed",),
    "probit": ("equivalence",),
}

# The profile of each model that an analysis reads where that has not its own name.
PROFILES: dict[str, str] = {"motif": "layers"}


def profile_of(analysis: str) -> str:
    """The module of ``stamp.report.profiles`` whose tables an analysis reads."""
    return PROFILES.get(analysis, analysis)
