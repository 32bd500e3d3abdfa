"""The further analyses of a study, and the files that each reads beside scores and outcomes.

Named here as text, so that planning imports no analysis. An analysis is the module of its name in
``stamp.analyses``; a figure is drawn of it where ``stamp.figures`` has a module of that name.
"""

from __future__ import annotations

ANALYSES: dict[str, tuple[str, ...]] = {
    "ablation": (),
    "alarm": (),
    "backbones": (),
    "baselines": ("metrics",),
    "corruptions": ("evaluations",),
    "cost": ("costs", "metrics"),
    "counts": ("counts",),
    "failures": (),
    "families": (),
    "kinds": ("metrics",),
    "leave_one_out": (),
    "objectives": (),
    "partials": (),
    "power": (),
    "probit": (),
    "regimes": (),
    "residuals": (),
    "strata": ("evaluations",),
    "temperature": ("calibrations",),
}

# The further forward passes that an analysis reads, by its name; kinds are in `stamp.pass_kinds`.
# What `baselines` reads follows from the study's metrics.
PASSES: dict[str, tuple[str, ...]] = {}

# Keys of a study's ``statistics`` that only these analyses take.
OPTIONS: dict[str, tuple[str, ...]] = {"alarm": ("delta",), "baselines": ("mixed",)}
