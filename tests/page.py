"""A page of the documentation whose commands are run: its output is what they really print.

    PYTHONPATH=workflow/scripts:tests python tests/page.py docs/add-a-model.md

writes the output of every ``console`` block of the page anew; the tests compare it. Commands run in
a small copy of the phantom study with the files that the page speaks of.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from networks import network, write_onnx, write_outputs, write_torchscript
from project import PHANTOM, ZOOS, Project

BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """The command of each block, on one line, and the output that the page shows."""
    for found in BLOCK.finditer(text):
        lines = found[1].splitlines()
        command = [lines.pop(0).removeprefix("$ ")]
        while command[-1].endswith("\\"):
            command.append(lines.pop(0).strip())
        yield " ".join(part.removesuffix("\\").strip() for part in command), "\n".join(lines)


def prepare(folder: Path) -> Project:
    """The small study under the name ``phantom``, run, and a network in every form."""
    from stamp.models.weights import write_weights

    project = Project.create(folder, {"phantom": {**PHANTOM, "zoo": ["phantom"]}})
    project.write("zoo/phantom.yaml", ZOOS["small_phantom"])
    project.finish()
    files = project.folder / "models"
    files.mkdir()
    classes, size = PHANTOM["classes"], PHANTOM["pixels"]["size"]
    module = network(len(classes), size)
    write_weights(module, files / "chest.safetensors", {})
    write_torchscript(module, files / "chest.pt", size)
    write_onnx(module, files / "chest.onnx", size)
    import numpy as np
    import polars as pl

    ids = [
        image
        for view in ("source", "external")
        for image in pl.read_parquet(project.result(f"phantom/views/{view}.parquet"))["image"]
    ]
    p = np.random.default_rng(0).uniform(size=(len(ids), len(classes)))
    write_outputs(files / "chest.csv", ids, p, classes)
    return project


def output(project: Project, command: str) -> str:
    """What a command prints in the project, both streams, without blank ends of lines."""
    python = sys.executable
    shell = command.replace("python -m", f"{python} -m").replace(
        "snakemake ", f"{python} -m snakemake "
    )
    library = project.folder / "workflow" / "scripts"
    done = subprocess.run(
        shell,
        shell=True,
        cwd=project.folder,
        env={**project.environment(), "PYTHONPATH": str(library)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())


def regenerate(page: Path) -> None:
    """Write a page's outputs anew."""
    with tempfile.TemporaryDirectory() as folder:
        project = prepare(Path(folder) / "project")

        def renew(found: re.Match[str]) -> str:
            (command, _), *_ = blocks(found[0])
            asked = found[1].splitlines()
            shown = 1 + next(n for n, line in enumerate(asked) if not line.endswith("\\"))
            return "\n".join(["```console", *asked[:shown], output(project, command), "```"])

        page.write_text(BLOCK.sub(renew, page.read_text()))


if __name__ == "__main__":
    regenerate(Path(sys.argv[1]))
