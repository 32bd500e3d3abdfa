"""Pages of the documentation whose commands are run, and whose outputs are what they printed.

    PYTHONPATH=workflow/scripts:tests python tests/walkthrough.py docs/tutorial.md

runs a page in a copy of the project and writes its outputs anew; the tests compare them. Bash runs
two kinds of blocks: an ``sh`` block must go well, and a ``text`` block after it shows its standard
output; a ``console`` block has a command after ``$`` and below it all that was printed, be it a
mistake.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import warm
from project import PHANTOM, ZOOS, Project, checkout

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"\$ ((?:.*\\\n)*.*\n)")
NUMBER = re.compile(r"-?\d+\.\d+|\d+(?=%)")


@dataclass(frozen=True)
class Step:
    """A command of a page, and where the output that it shows stands, if it shows any.

    ``everything`` that a command prints is shown, and it may fail; or its standard output alone.
    """

    command: str
    shown: str | None = None
    place: tuple[int, int] | None = None
    everything: bool = False


def steps(text: str) -> list[Step]:
    """The commands of a page in order."""
    found: list[Step] = []
    for block in BLOCK.finditer(text):
        if block[1] == "sh":
            found.append(Step(block[2]))
        elif block[1] == "text" and found and found[-1].shown is None:
            found[-1] = Step(found[-1].command, block[2], block.span(2))
        elif block[1] == "console" and (asked := CONSOLE.match(block[2])):
            place = block.start(2) + asked.end(), block.end(2)
            found.append(Step(asked[1], text[slice(*place)], place, everything=True))
    return found


def fresh(folder: Path) -> Path:
    """The project as it is checked out."""
    return checkout(folder, "config")


def small_study(folder: Path) -> Path:
    """A small study under the name ``phantom``, run, and a network in every form to add to it."""
    import numpy as np
    import polars as pl
    from networks import network, write_onnx, write_outputs, write_torchscript

    from stamp.models.weights import write_weights

    project = Project.create(folder, {"phantom": {**PHANTOM, "zoo": ["phantom"]}})
    project.write("zoo/phantom.yaml", ZOOS["small_phantom"])
    project.finish()
    files = project.folder / "models"
    files.mkdir()
    classes, size = PHANTOM["classes"], PHANTOM["preprocessing"]["size"]
    module = network(len(classes), size)
    write_weights(module, files / "chest.safetensors", {})
    write_torchscript(module, files / "chest.pt", size)
    write_onnx(module, files / "chest.onnx", size)
    ids = [
        image
        for view in ("source", "external")
        for image in pl.read_parquet(project.result(f"phantom/views/{view}.parquet"))["image"]
    ]
    p = np.random.default_rng(0).uniform(size=(len(ids), len(classes)))
    write_outputs(files / "chest.csv", ids, p, classes)
    return project.folder


# What each page's commands find when they begin.
PAGES: dict[str, Callable[[Path], Path]] = {
    "tutorial.md": fresh,
    "add-a-model.md": small_study,
    "outputs-only.md": fresh,
    "something-failed.md": fresh,
}


def environment(folder: Path) -> dict[str, str]:
    """The active environment: its programs, and the library as `envs/install` links it."""
    dropped = ("SNAKEMAKE_PROFILE", "COLUMNS")
    kept = {key: value for key, value in os.environ.items() if key not in dropped}
    folders = [Path(warm.python()).parent, Path(sys.executable).parent, kept.get("PATH", "")]
    path = os.pathsep.join(map(str, folders))
    library = str(folder / "workflow" / "scripts")
    return {**kept, "PATH": path, "PYTHONPATH": library, "XDG_CACHE_HOME": str(folder / "cache")}


def run(step: Step, folder: Path) -> str:
    """What a step shows; one that must go well and fails raises with all that it said."""
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", step.command],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if step.everything else subprocess.PIPE,
        text=True,
        timeout=600,
    )
    if done.returncode and not step.everything:
        raise AssertionError(f"{step.command}\n{done.stdout}\n{done.stderr}")
    return tidy(done.stdout)


def tidy(text: str) -> str:
    """A text without blank ends of lines and without empty lines around it."""
    return "".join(f"{line.rstrip()}\n" for line in text.strip("\n").splitlines())


def alike(shown: str, printed: str, tolerance: float) -> bool:
    """Whether two texts are equal but for decimals and percentages, which may differ a little.

    With a tolerance the places of models may differ too, as the order and width of a table's rows.
    """
    texts = [_unplaced(text) if tolerance else text.splitlines() for text in (shown, printed)]
    if len({tuple(NUMBER.sub("#", line) for line in lines) for lines in texts}) > 1:
        return False
    pairs = zip(*(NUMBER.findall("\n".join(lines)) for lines in texts), strict=True)
    return all(abs(_value(a) - _value(b)) <= tolerance for a, b in pairs)


def _unplaced(text: str) -> list[str]:
    """The lines of a text without places, ranks, signs, widths, digests and the range of logits."""
    text = re.sub(r"\b[0-9a-f]{64}\b", "digest", text)
    text = re.sub(r"finite, from \S+ to \S+", "finite", text)
    text = re.sub(r"place \d+|above\s+\d+% of them|\u2502 \d+ +\u2506", "place", text)
    text = re.sub(r"interval \d+ to \d+\b(?!\.)", "interval", text)
    text = re.sub(r"(\u2506 \d+\.000 +){2}", "ranks", text)
    text = re.sub(r"[\u2500\u2550]+| +", " ", re.sub(r"-(?=\d)", "", text))
    lines = text.splitlines()
    rows = iter(sorted(line for line in lines if line.startswith("place")))
    return [next(rows) if line.startswith("place") else line for line in lines]


def _value(text: str) -> float:
    return float(text) if "." in text else float(text) / 100


def check(page: Path, folder: Path, tolerance: float) -> int:
    """Run a page in a new folder and compare what it shows; how many outputs were compared."""
    here, compared = PAGES[page.name](folder), 0
    for step in steps(page.read_text()):
        printed = run(step, here)
        if step.shown is not None:
            assert tidy(step.shown), f"{step.command}\nhas no output on the page: write it anew"
            assert alike(tidy(step.shown), printed, tolerance), f"{step.command}\n{printed}"
            compared += 1
    return compared


def rewritten(page: Path) -> str:
    """The page with the outputs that its commands print now."""
    text = page.read_text()
    with tempfile.TemporaryDirectory() as folder:
        here = PAGES[page.name](Path(folder) / "stamp")
        outputs = [(step, run(step, here)) for step in steps(text)]
    for step, printed in reversed(outputs):
        if step.place is not None:
            start, end = step.place
            text = text[:start] + printed + text[end:]
    return text


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(rewritten(Path(name)))
