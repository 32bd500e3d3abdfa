"""What a study will write into its pixel caches, told before the first image is decoded.

The number of a view's images comes from its view if that is made, else from the index of its data
sets, else from what ``config/datasets.yaml`` says was published.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stamp.config import view_names
from stamp.config.plan import Plan
from stamp.config.study import Study
from stamp.core.errors import UserError
from stamp.data.transfer.disk import readable_bytes
from stamp.data.views import select


@dataclass(frozen=True, slots=True)
class PlannedCache:
    """One file of pixels; ``size`` in bytes is None where the number of images is not known."""

    study: str
    view: str
    preprocessing: str
    size: int | None
    there: bool

    @property
    def missing(self) -> int:
        """The bytes that are still to be written, as far as they are known."""
        return 0 if self.there or self.size is None else self.size


def planned_caches(study: Study, plan: Plan) -> list[PlannedCache]:
    """Every pixel cache that the study keeps: one byte per pixel and channel."""
    found = []
    for view, how in study.cached_pixels:
        images = images_of(study, view, plan)
        size = None if images is None else images * how.size**2 * how.channels
        file = Path(plan.results, study.name, "pixels", view, f"{how.key}.npy")
        found.append(PlannedCache(study.name, view, how.key, size, file.is_file()))
    return found


def images_of(study: Study, view: str, plan: Plan) -> int | None:
    """How many images a view has, the source's and the labeled ones beyond it at most."""
    made = Path(plan.results, study.name, "views", f"{view}.parquet")
    if made.is_file():
        return int(pl.scan_parquet(made).select(pl.len()).collect().item())
    if view == view_names.SOURCE:
        return _pool(study, plan) + study.calibration.n_images
    wanted = study.view(view)
    counted = [_counted(name, wanted, plan) for name in wanted["datasets"]]
    known = [number for number in counted if number is not None]
    if len(known) < len(counted):
        return None
    shared = view == view_names.ID and study.id and study.id.split in study.pairs.split
    return max(0, sum(known) - (_pool(study, plan) if shared else 0))


def _pool(study: Study, plan: Plan) -> int:
    """The images of all pairs: two each, and no more than there are to draw from."""
    most = 2 * (study.pairs.max_pairs + sum(study.pairs.also.values()))
    wanted = {**study.source_images, "split": study.pairs.split}
    there = _counted(study.source.dataset, wanted, plan)
    return most if there is None else min(most, there)


def _counted(dataset: str, wanted: dict, plan: Plan) -> int | None:
    """The images of a data set in some domains and splits: by its index, or as published."""
    index = Path(plan.results, "datasets", dataset, "index.parquet")
    if index.is_file():
        try:
            return len(select(pl.read_parquet(index, columns=["domain", "split"]), wanted, dataset))
        except UserError:
            return None
    published, split = plan.datasets[dataset].images, wanted.get("split")
    if wanted.get("domains") is not None or not published:
        return None
    splits = list(published) if split is None else [split] if isinstance(split, str) else split
    return sum(published[one] for one in splits) if set(splits) <= set(published) else None


def free_space(folder: str) -> tuple[int, Path]:
    """The free bytes of the disk that a folder is or will be on, and the part that is there."""
    place = Path(folder).absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free, place


def room_for_caches(plan: Plan, due: Iterable[str]) -> str | None:
    """One line on what ``due`` studies will write into pixel caches; None where that is nothing.

    What does not fit on the disk is refused.
    """
    caches = [one for name in due for one in planned_caches(plan.studies[name], plan)]
    missing = [one for one in caches if not one.there]
    if not missing:
        return None
    total, (free, place) = sum(one.missing for one in missing), free_space(plan.results)
    unknown = sorted({f"{one.study}/{one.view}" for one in missing if one.size is None})
    files = "1 file" if len(missing) == 1 else f"{len(missing)} files"
    text = f"pixel caches: {readable_bytes(total)} in {files} will be written to {plan.results}"
    if unknown:
        text += f", and those of {', '.join(unknown)}, whose images are not counted yet"
    text += f"; {readable_bytes(free)} are free on {place}"
    if total > free:
        raise UserError(
            f"{text}: they do not fit. Make room, set `results` to another disk, or name fewer "
            "models in the study's file"
        )
    return text
