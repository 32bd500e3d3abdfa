"""Classifiers of the Hugging Face hub, added by their names and run, from a hub on loopback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hub import Hub
from networks import vit_files
from project import ABOUT, Project, Run, checkout

from stamp.cli.example_data import write_example
from stamp.core.artifacts import array_metadata

STUDY = {
    "title": "Shapes",
    "task": "multiclass",
    "classes": ["circle", "square", "triangle"],
    "source": {"dataset": "shapes"},
    "preprocessing": {"size": 48, "channels": 1},
    "pairs": {"split": "test", "semantic": "class", "max_pairs": 60},
    "calibration": {"split": "calibration", "n_images": 15},
    "zoo": ["shapes"],
    "statistics": {"permutations": 100, "resamples": 100},
}
TEXTS = ("--family", "ViT", "--objective", "supervised", "--regime", "plain", "--trained-on")
LABELS = {0: "circle", 1: "Square", 2: "triangle"}


class Hubbed(Project):
    """A project whose processes know the loopback hub alone; its settings are read at import."""

    def __init__(self, folder: Path, endpoint: str):
        super().__init__(folder)
        self.endpoint = endpoint

    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in super().environment().items()
                if not key.lower().endswith("_proxy") and not key.startswith("HF_")}  # fmt: skip
        return {**kept, "HF_ENDPOINT": self.endpoint, "HF_HOME": str(self.folder / "hub")}

    def program(self, *line: str) -> Run:
        done = subprocess.run(
            [sys.executable, "-m", *line],
            cwd=self.folder,
            env={**self.environment(), "PYTHONPATH": str(self.folder / "workflow" / "scripts")},
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert "Traceback" not in done.stdout, done.stdout
        return Run(done.returncode, done.stdout)


def test_a_list_of_repositories_is_added_pinned_and_run(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Hub(tmp_path / "served") as hub:
        first = hub.push(
            "someone/small-vit", vit_files(tmp_path_factory.mktemp("a"), LABELS, seed=1)
        )
        old = hub.push("other/vit", vit_files(tmp_path_factory.mktemp("b"), LABELS, seed=2))
        hub.push("other/vit", vit_files(tmp_path_factory.mktemp("c"), LABELS, seed=3))
        project = Hubbed(checkout(tmp_path / "project"), hub.endpoint)
        project.write("config.yaml", {"studies": ["shapes"], "seed": 3, "device": "cpu"})
        write_example(project.folder / "mine", patients=5, size=48, seed=0)
        source = {"adapter": "folder", "root": "mine/shapes", **ABOUT}
        project.write("datasets.yaml", {"shapes": source})
        project.write("studies/shapes.yaml", STUDY)
        project.write("zoo/shapes.yaml", {})
        (project.folder / "config" / "zoo" / "shapes.yaml").write_text("")
        (project.folder / "repos.txt").write_text(f"hf:someone/small-vit\nother/vit@{old}\n")

        add = ("stamp", "add-model", "--study", "shapes", "--hf", "repos.txt", *TEXTS)
        wrong = project.program(*add)
        assert wrong.code == 1
        assert "id2label" in wrong.text and "did you mean 'square'" in wrong.text
        added = project.program(*add, "--labels", "{Square: square}")
        assert added.code == 0, added.text
        zoo = project.read("zoo/shapes.yaml")
        assert zoo["small-vit"]["load"] == {
            "source": "hf",
            "hub": "someone/small-vit",
            "revision": first,
            "preprocessing": {"size": 32, "channels": 3, "interpolation": "bilinear"},
            "labels": {"Square": "square"},
        }
        assert zoo["vit"]["load"]["revision"] == old
        assert "snakemake --cores" in added.text.strip().splitlines()[-1]

        files = [f"results/shapes/logits/source/{key}.safetensors" for key in zoo]
        done = project.program("snakemake", "--cores", "1", *files)
        assert done.code == 0, done.text
        assert [array_metadata(project.folder / one)["weights_revision"] for one in files] == [
            first,
            old,
        ]
