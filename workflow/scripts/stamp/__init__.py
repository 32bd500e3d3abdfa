"""STAMP: rank image classifiers from source images alone.

The functions for use from Python (``docs/python.md``) are loaded when they are first named:
``import stamp`` imports no torch, no Snakemake and no NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stamp.api.accumulator import Accumulator
    from stamp.api.compare import Association, Ranking, correlate, rank
    from stamp.api.images import Images
    from stamp.api.score import ScoredModel, Settings, score
    from stamp.api.temperature import fit_temperature
    from stamp.core.errors import UserError
    from stamp.stats.correlations.correlation_summary import CorrelationSettings
    from stamp.stats.regret import Regret, Resampling, regret

__version__ = "0.1.0"

__all__ = [
    "Accumulator",
    "Association",
    "CorrelationSettings",
    "Images",
    "Ranking",
    "Regret",
    "Resampling",
    "ScoredModel",
    "Settings",
    "UserError",
    "correlate",
    "fit_temperature",
    "rank",
    "regret",
    "score",
]

_HOMES = {
    "stamp.api.accumulator": ("Accumulator",),
    "stamp.api.compare": ("Association", "Ranking", "correlate", "rank"),
    "stamp.api.images": ("Images",),
    "stamp.api.score": ("ScoredModel", "Settings", "score"),
    "stamp.api.temperature": ("fit_temperature",),
    "stamp.core.errors": ("UserError",),
    "stamp.stats.correlations.correlation_summary": ("CorrelationSettings",),
    "stamp.stats.regret": ("Regret", "Resampling", "regret"),
}


def __getattr__(name: str) -> Any:
    """A function or record of ``__all__``, from the module that it lives in."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'stamp' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
