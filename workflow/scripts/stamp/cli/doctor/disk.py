"""The free disk beside what the configured studies will write, roughly.

Counted are pixel caches (one byte per pixel and channel, one cache per preprocessing) and logits
(four bytes per output and model) of the views whose images are known. Downloads, weights and extra
outputs are in ``python -m stamp cost``.
"""

from __future__ import annotations

from collections.abc import Iterator

from stamp.cli.doctor.finding import ERROR, NOTE, OK, WARNING, Finding
from stamp.config.plan import Plan
from stamp.config.study import Study
from stamp.data.planned_caches import free_space, images_of, planned_caches
from stamp.data.transfer.disk import readable_bytes

LOGIT = 4


def findings(plan: Plan) -> Iterator[Finding]:
    """Each study's share, then the free space of the results' disk."""
    total, unknown = 0, []
    for study in plan.studies.values():
        size, views = written(study, plan)
        total += size
        unknown += [f"{study.name}/{view}" for view in views]
    free, place = free_space(plan.results)
    text = f"{readable_bytes(free)} free on {place}, about {readable_bytes(total)} for "
    text += "pixel caches and logits of all studies (rough; without downloads and weights)"
    yield Finding(ERROR if total > free else WARNING if 2 * total > free else OK, "disk", text)
    if unknown:
        yield Finding(NOTE, "disk", f"not counted, since not indexed yet: {', '.join(unknown)}")


def written(study: Study, plan: Plan) -> tuple[int, list[str]]:
    """Bytes that a study writes, and the views whose number of images is not known yet."""
    caches = planned_caches(study, plan)
    images = [images_of(study, view, plan) for view in study.forwarded_views]
    outputs = sum(one or 0 for one in images) * len(study.models) * len(study.classes) * LOGIT
    unknown = dict.fromkeys(one.view for one in caches if one.size is None)
    return sum(one.size or 0 for one in caches) + outputs, list(unknown)
