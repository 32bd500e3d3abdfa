"""The free disk beside what the configured studies will write, roughly.

Counted are pixel caches (one byte per pixel and channel, one cache per preprocessing) and logits
(four bytes per output and model) of the views whose images are known: those of an index that has
been made, and for the source the images of pairs and calibration at most. Downloads, weights and
extra outputs are not counted.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from stamp.cli.doctor.finding import ERROR, NOTE, OK, WARNING, Finding
from stamp.config import view_names
from stamp.config.plan import Plan
from stamp.config.study import Study
from stamp.core.errors import UserError
from stamp.data.transfer.disk import readable_bytes
from stamp.data.views import select

LOGIT = 4


def findings(plan: Plan) -> Iterator[Finding]:
    """Each study's share, then the free space of the results' disk."""
    total, unknown = 0, []
    for study in plan.studies.values():
        size, views = written(study, Path(plan.results))
        total += size
        unknown += [f"{study.name}/{view}" for view in views]
    place = Path(plan.results)
    while not place.exists():
        place = place.absolute().parent
    free = shutil.disk_usage(place).free
    text = f"{readable_bytes(free)} free on {place.absolute()}, about {readable_bytes(total)} for "
    text += "pixel caches and logits of all studies (rough; without downloads and weights)"
    yield Finding(ERROR if total > free else WARNING if 2 * total > free else OK, "disk", text)
    if unknown:
        yield Finding(NOTE, "disk", f"not counted, since not indexed yet: {', '.join(unknown)}")


def written(study: Study, results: Path) -> tuple[int, list[str]]:
    """Bytes that a study writes, and the views whose number of images is not known yet."""
    total, unknown = 0, []
    shapes = {model.preprocessing.key: model.preprocessing for model in study.models.values()
              if not model.precomputed}  # fmt: skip
    pixels = sum(one.size**2 * one.channels for one in shapes.values())
    trained = [view_names.TRAIN] if any(one.trainer for one in study.models.values()) else []
    for view in (*study.forwarded_views, *trained):
        images = images_of(study, view, results)
        if images is None:
            unknown.append(view)
            continue
        outputs = 0 if view in trained else len(study.models) * len(study.classes) * LOGIT
        total += images * (pixels + outputs)
    return total, unknown


def images_of(study: Study, view: str, results: Path) -> int | None:
    """How many images a view has; None where the index is not made."""
    if view == view_names.SOURCE:
        also = sum(study.pairs.also.values())
        return 2 * (study.pairs.max_pairs + also) + study.calibration.n_images
    wanted, number = study.view(view), 0
    for name in wanted["datasets"]:
        index = results / "datasets" / name / "index.parquet"
        if not index.is_file():
            return None
        try:
            rows = pl.read_parquet(index, columns=["domain", "split"])
            number += len(select(rows, wanted, view))
        except UserError:
            return None
    return number
