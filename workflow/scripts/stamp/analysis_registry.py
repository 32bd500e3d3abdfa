"""The further analyses of a study, and the files that each reads beside scores and outcomes.

Named here as text, so that planning imports no analysis. An analysis is the module of its name in
``stamp.analyses``; a figure is drawn of it where ``stamp.figures`` has a module of that name.
"""

from __future__ import annotations

INPUTS = ("evaluations", "counts", "calibrations", "metrics")

ANALYSES: dict[str, tuple[str, ...]] = {
    "baselines": ("metrics",),
    "corruptions": ("evaluations",),
    "counts": ("counts",),
    "families": (),
    "strata": ("evaluations",),
    "temperature": ("calibrations",),
    "alarm": (),
    "failures": (),
    "leave_one_out": (),
    "partials": (),
    "power": (),
    "probit": (),
    "residuals": (),
}

SETTINGS: dict[str, tuple[str, ...]] = {"alarm": ("delta",)}
"""Keys of a study's statistics that an analysis reads beside permutations, resamples and level."""
