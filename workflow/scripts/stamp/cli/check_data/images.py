"""Image files as the workflow will read them: whether they exist and open, and what they are."""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from PIL import Image, UnidentifiedImageError

from stamp.cli.data_argument import Named
from stamp.cli.terminal.report_lines import ERROR, WARNING, Report
from stamp.core.errors import UserError
from stamp.data.download import absent
from stamp.images.reading import FORMATS, open_image

SAMPLE = 200
ORIENTATION = 0x0112
SHOWN = 5  # images of one kind of mistake that are named one by one
THREADS = 4


def check_images(report: Report, named: Named, every: bool, seed: int) -> None:
    """Check that all images exist, and open a sample or all of them."""
    paths = named.index["path"].to_list()
    missing = set(absent(paths))
    if missing:
        first = os.path.relpath(next(path for path in paths if path in missing), named.root)
        how = f"; {named.help}" if named.help else ""
        if "\\" in first:
            how = "; write folders with /, not with \\"
        report.found(
            ERROR,
            f"{len(missing):,} of {len(paths):,} images are missing in {named.root}, first {first}"
            f"{how}",
        )
    there = [path for path in paths if path not in missing]
    if not every and len(there) > SAMPLE:
        chosen = np.random.default_rng([seed, 0x100C]).permutation(len(there))[:SAMPLE]
        there = [there[place] for place in np.sort(chosen)]
    with ThreadPoolExecutor(THREADS) as workers:
        seen = list(workers.map(opened, there))
    bad = [one.problem for one in seen if one.problem]
    for problem in bad[:SHOWN]:
        report.found(ERROR, problem)
    if len(bad) > SHOWN:
        report.found(ERROR, f"{len(bad) - SHOWN:,} more images can't be read")
    good = [one for one in seen if not one.problem]
    kinds = Counter(one.kind for one in good)
    if good:
        widths, heights = zip(*(one.size for one in good), strict=True)
        report.say(
            f"opened: {len(seen):,} of {len(paths):,} images ("
            f"{', '.join(f'{kind} {number:,}' for kind, number in sorted(kinds.items()))}), "
            f"{min(widths)} x {min(heights)} to {max(widths)} x {max(heights)} pixels"
        )
    for what, text in (
        ("flat", "show one value only, first {}"),
        (
            "rotated",
            "carry an EXIF orientation, which is not applied, first {}: rotate their pixels",
        ),
    ):
        some = [one.path for one in good if getattr(one, what)]
        if some:
            report.found(WARNING, f"{len(some):,} of the opened images {text.format(some[0])}")


@dataclass(frozen=True, slots=True)
class Opened:
    """One image: its kind of file and size, whether it is flat or carries an orientation."""

    path: str
    kind: str = ""
    size: tuple[int, int] = (0, 0)
    flat: bool = False
    rotated: bool = False
    problem: str = ""


def opened(path: str) -> Opened:
    """An image as the workflow will read it, or what is wrong with it."""
    try:
        picture = open_image(path, 3)
    except UserError as mistake:
        return Opened(path, problem=str(mistake))
    kind, rotated = "DICOM", False
    try:
        with Image.open(path, formats=FORMATS) as file:
            kind = str(file.format)
            rotated = file.getexif().get(ORIENTATION, 1) != 1
    except (OSError, UnidentifiedImageError):
        pass  # DICOM, which Pillow does not know
    low, high = zip(*picture.getextrema(), strict=True)
    return Opened(path, kind, picture.size, low == high, rotated)
