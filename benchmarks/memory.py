"""Peak memory of an extraction of few and of many images, each in a process of its own."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.child import python
from benchmarks.row import Row
from benchmarks.synthetic import open_cache, write_cache

FEW, MANY = 2_000, 20_000
SIZE, CHANNELS, CLASSES = 64, 3, 1_000
CHILD = """
import sys
from pathlib import Path
from benchmarks.memory import peak
print(*peak(Path(sys.argv[1]), int(sys.argv[2])))
"""
BLOCK = {
    "arch": "resnet18",
    "arch_args": {
        "layers": [1, 1, 1, 1],
        "channels": [8, 16, 32, 64],
        "stem_type": "deep",
        "stem_width": 8,
    },
    "preprocessing": {"size": SIZE, "channels": CHANNELS},
}


def resident(which: str) -> float:
    """This process's resident memory in MB: its peak (``VmHWM``) or the present one (``VmRSS``).

    Not ``ru_maxrss``: a process that was started by a larger one inherits that one's peak.
    """
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(which))
    return int(line.split()[1]) / 1024


def peak(folder: Path, images: int) -> tuple[float, float]:
    """Resident MB before the extraction, and the peak after it."""
    import torch

    from stamp.inference.logits import Execution, extract_logits
    from stamp.models.loaders.train import network

    torch.set_num_threads(1)
    classes = [str(number) for number in range(CLASSES)]
    loaded = network(BLOCK, classes)
    cache = open_cache(folder, images)
    before = resident("VmRSS")
    metadata = {"model": "benchmark", "view": "benchmark"}
    extract_logits(folder / "out", cache, loaded, classes, metadata, Execution("cpu"))
    return before, resident("VmHWM")


def main() -> list[Row]:
    """Both peaks, and their ratio."""
    rows, peaks = [], {}
    for images in (FEW, MANY):
        with TemporaryDirectory() as name:
            folder = Path(name)
            write_cache(folder, images, SIZE, CHANNELS)
            before, peaks[images] = map(float, python(CHILD, str(folder), str(images)).split())
        read, written = images * SIZE * SIZE * CHANNELS / 1e6, images * CLASSES * 4 / 1e6
        note = (
            f"{before:.0f} MB before it; {read:,.0f} MB of pixels read, {written:.0f} MB of logits "
            "written"
        )
        rows.append(Row(f"peak memory, {images:,} images", peaks[images], "MB", "", note))
    ratio, growth = peaks[MANY] / peaks[FEW], peaks[MANY] - peaks[FEW]
    note = f"{growth:+.1f} MB"
    return [*rows, Row(f"peak memory, {MANY:,} over {FEW:,} images", ratio, "x", "about 1", note)]
