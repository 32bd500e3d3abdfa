"""`python -m stamp add-model` and `status` in a real project, beside what Snakemake itself says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from networks import ARCH, ARGS, network, write_onnx, write_outputs, write_torchscript
from project import PHANTOM, Project

ZOO = "config/zoo/small_phantom.yaml"
TEXTS = ["--family", "CNN", "--objective", "supervised", "--regime", "plain"]
NEW = ["add-model", "--study", "small_phantom", "--key", "chest", *TEXTS]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small network as a checkpoint and as ONNX."""
    from stamp.models.weights import write_weights

    folder = tmp_path_factory.mktemp("weights")
    module = network(len(PHANTOM["classes"]), PHANTOM["preprocessing"]["size"])
    write_weights(module, folder / "w.safetensors", {})
    write_onnx(module, folder / "w.onnx", PHANTOM["preprocessing"]["size"])
    write_torchscript(network(5, 32), folder / "five.pt", 32)
    write_scalar(folder / "scalar.onnx")
    return folder


def write_scalar(path: Path) -> None:
    """A file whose input is one number."""
    from onnx import TensorProto, helper, save

    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, []) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", ends[:1], ends[1:])
    opset = helper.make_opsetid("", 13)
    save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)


def checkpoint(weights: Path) -> list[str]:
    given = ["--checkpoint", str(weights / "w.safetensors"), "--arch", ARCH]
    return [
        *given,
        "--arch-args",
        str(ARGS),
        "--mean",
        "0.45",
        "--std",
        "0.27",
        "--trained-on",
        "train",
    ]


def test_a_model_is_added_at_the_end_of_the_file_and_the_plan_is_snakemakes(
    project: Project, weights: Path
) -> None:
    file = project.folder / ZOO
    before = f"# mine\n{file.read_text()}# the end, without a newline"
    file.write_text(before)
    done = project.stamp(*NEW, *checkpoint(weights))
    assert done.code == 0, done.text
    after = file.read_text()
    assert after.startswith(before + "\nchest:\n")
    zoo = yaml.safe_load(after)
    assert {key: zoo[key] for key in yaml.safe_load(before)} == yaml.safe_load(before)
    assert zoo["chest"]["load"]["arch_args"] == ARGS
    assert "one forward pass on 8 images of the source: outputs [8, 8], all finite" in done.text
    jobs = project.plan()
    own = [job for job in jobs if job.endswith(" chest")]
    counts = {rule: sum(job.startswith(f"{rule} ") for job in own) for rule in ("logits", "score")}
    assert f"chest: logits {counts['logits']}, calibrate 1, score {counts['score']}" in done.text
    assert (
        "for all models: collect 1, correlate 1, main_table 1, leaderboard 1, figure 4" in done.text
    )
    assert "due too" not in done.text
    assert sum(jobs.values()) == 7 + 12
    assert project.finish("--until", "score").code == 0


def test_a_dry_run_and_every_failure_leave_the_file_as_it_was(
    project: Project, weights: Path
) -> None:
    file, onnx = project.folder / ZOO, ["--onnx", str(weights / "w.onnx")]
    before, stat = file.read_text(), file.stat()
    normal = ["--mean", "0.45", "--std", "0.27"]
    assert project.stamp(*NEW, *onnx, *normal, "--dry-run").code == 0
    for arguments, line in [
        ([*onnx], "--onnx needs --mean and --std"),
        ([*onnx, "--mean", "0", "0", "0", "--std", "1", "1", "1"], "but pixels are [n, 3, 32, 32]"),
        ([*onnx, *normal, "--pixels-size", "48"], "but pixels are [n, 1, 48, 48]"),
        ([*onnx, *normal, "--outputs", "edema", *"1234567"], "did you mean 'Edema'?"),
        ([*onnx, *normal, "--key", "linear"], "model 'linear' is there already"),
        ([*onnx, *normal, "--key", "a/b"], "a/b"),
        ([*onnx, *normal, "--study", "small_phantoms"], "did you mean 'small_phantom'?"),
        ([*onnx, *normal, "--zoo", "small_digits"], "has no zoo 'small_digits'"),
        (["--checkpoint", "no.safetensors", "--arch", ARCH], "no such file 'no.safetensors'"),
        (["--checkpoint", str(weights / "w.safetensors")], "--checkpoint needs --arch"),
        (["--timm", "resnet5O.a1_in1k"], "unknown architecture 'resnet5O': did you mean"),
        (["--torchxrayvision", "densenet121-res224-nhi"], "did you mean 'densenet121-res224-nih'?"),
        (["--python", "own:make", *normal], "code is run only with `allow_code: true`"),
        (
            ["--torchscript", str(weights / "five.pt"), *normal],
            "stamp: model 'chest': outputs have shape [5], but the study has 8 classes",
        ),
        (["--onnx", str(weights / "scalar.onnx"), *normal], "its input has shape [], not [n,"),
    ]:
        done = project.stamp(*NEW, *arguments)
        assert done.code == 1, done.text
        said = [text for text in done.text.splitlines() if text.startswith("stamp: ")]
        assert len(said) == 1 and line in said[0], done.text
        assert "/stamp-zoo-" not in said[0]
    assert file.read_text() == before
    assert file.stat().st_mtime_ns == stat.st_mtime_ns
    assert not list(file.parent.glob(".*"))


def test_before_anything_has_run_outputs_and_splits_are_checked_all_the_same(
    tmp_path: Path,
) -> None:
    """No view is known yet, but probabilities are, and so are the splits that the study names."""
    project = Project.create(tmp_path / "project", {"small_phantom": PHANTOM})
    p = np.random.default_rng(0).uniform(size=(9, 8))
    file = write_outputs(tmp_path / "p.csv", [*"abcdefghi"], p, PHANTOM["classes"])
    done = project.stamp(*NEW, "--logits", str(file), "--dry-run")
    assert (done.code, "look like probabilities" in done.text) == (1, True), done.text
    given = [
        "--logits",
        str(file),
        "--no-probabilities",
        "--trained-on",
        "night",
        "tset",
        "--dry-run",
    ]
    done = project.stamp(*NEW, *given)
    assert done.code == 0, done.text
    assert "probabilities: false" in done.text
    assert "note: trained_on: the source has no split 'tset': did you mean 'test'?\n" in done.text
    assert "night'" not in done.text  # the data may well have it


def states(project: Project, study: str = "small_phantom") -> dict[str, tuple[str, str]]:
    """Model by model the state and the reason that the command prints."""
    done = project.stamp("status", "--study", study)
    assert done.code == 0, done.text
    head, *lines = done.text.splitlines()
    assert head.startswith(f"{study}: ")
    rows = [line.split(maxsplit=2) for line in lines if not line.startswith("  and ")]
    return {row[0]: (row[1], row[2] if len(row) > 2 else "") for row in rows}


def test_states_are_those_of_the_jobs_that_are_due(project: Project) -> None:
    assert set(states(project).values()) == {("done", "")}
    project.edit("zoo/small_phantom.yaml", lambda zoo: zoo["mixer"]["load"].update(epochs=1))
    project.result("small_phantom/scores/few.parquet").unlink()
    project.edit("zoo/small_phantom.yaml", lambda zoo: zoo.update(new=zoo["linear"]))
    broken = {**project.read("zoo/small_phantom.yaml")["linear"], "unavailable": "it is lost"}
    project.edit("zoo/small_phantom.yaml", lambda zoo: zoo.update(gone=broken))
    found = states(project)
    assert found["linear"] == found["noisy"] == ("done", "")
    assert found["mixer"][0] == "stale"
    assert found["mixer"][1].startswith(
        "train: its settings, its code or a package changed; 8 jobs"
    )
    assert found["few"] == ("missing", "1 job to do: score 1")
    assert found["new"][0] == "missing"
    assert found["new"][1].startswith("8 jobs to do: train 1, logits 2, calibrate 1, score 1")
    assert found["gone"] == ("unavailable", "it is lost")


def test_a_failed_model_shows_its_own_line_until_it_is_made(
    project: Project, weights: Path, tmp_path: Path
) -> None:
    from stamp.models.architectures import build
    from stamp.models.weights import write_weights

    entry = {
        **project.read("zoo/small_phantom.yaml")["linear"],
        "load": {
            "source": "checkpoint",
            "arch": ARCH,
            "arch_args": ARGS,
            "file": "w.safetensors",
            "mean": [0.45],
            "std": [0.27],
        },
    }
    project.edit("zoo/small_phantom.yaml", lambda zoo: zoo.update(bad=entry))
    file = project.folder / "w.safetensors"
    write_weights(build(ARCH, ARGS, 3, 1, 32), file, {})
    target = "results/small_phantom/logits/source/bad.safetensors"
    assert project.run(target).code != 0
    state, why = states(project)["bad"]
    assert state == "failed"
    assert why.startswith("logits source: w.safetensors: does not fit the architecture: ")
    file.write_bytes((weights / "w.safetensors").read_bytes())
    project.finish(target)
    assert states(project)["bad"][0] == "missing"
    project.finish()
    assert states(project)["bad"] == ("done", "")


def test_status_works_before_anything_has_run_and_says_what_is_not_pinned(tmp_path: Path) -> None:
    project = Project.create(tmp_path / "project")
    load = {
        "source": "timm",
        "name": "resnet18.a1_in1k",
        "preprocessing": {"size": 32, "channels": 1},
    }
    entry = {**project.read("zoo/small_phantom.yaml")["linear"], "load": load}
    pinned = {**entry, "load": {**load, "revision": "0" * 40}}
    project.edit("zoo/small_phantom.yaml", lambda zoo: zoo.update(loose=entry, pinned=pinned))
    done = project.stamp("status")
    assert done.code == 0, done.text
    assert done.text.startswith("small_phantom: 6 missing\n")
    assert "\nsmall_digits: 2 missing\n" in done.text
    assert "  not pinned to a commit of the hub: loose (`python -m stamp pin`)\n" in done.text
    project.edit("config.yaml", lambda config: config.update(seeds=1))
    done = project.stamp("status")
    assert (done.code, done.text) == (
        1,
        "stamp: config/config.yaml: unknown key 'seeds': did you mean 'seed'?\n",
    )
