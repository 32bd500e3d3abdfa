"""The SLURM profile without a SLURM: what jobs would ask for, and what a run leaves to look at."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml
from project import ROOT, Project, model

PROFILE = ("--profile", "profiles/slurm")
LOGITS = "results/small_phantom/logits/source/linear.safetensors"


@pytest.fixture
def fresh(tmp_path: Path) -> Project:
    """A project in which nothing has run."""
    return Project.create(tmp_path / "fresh")


def rules() -> dict[str, str]:
    """The text of every rule by its name."""
    text = "\n".join(path.read_text() for path in sorted((ROOT / "rules").glob("*.smk")))
    parts = re.split(r"^rule (\w+):\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def profile(with_gpu_lines: bool = False) -> str:
    """The profile, if wanted with the lines on GPUs as a user would uncomment them."""
    text = (ROOT / "profiles" / "slurm" / "config.yaml").read_text()
    if with_gpu_lines:
        head, lines, rest = re.split(
            r"(?<=^set-resources:\n)((?:  # .*\n)+?)(?=  # Short)", text, flags=re.M
        )
        text = head + re.sub(r"^  # ", "  ", lines, flags=re.M) + rest
    return text


def asked(project: Project, *arguments: str) -> dict[str, str]:
    """The resources of one forward pass."""
    text = project.finish("--dry-run", *PROFILE, *arguments, "--", LOGITS).text
    (line,) = re.findall(r"^rule logits:\n(?:    .*\n)*?    resources: (.*)$", text, flags=re.M)
    return dict(part.split("=", 1) for part in line.split(", "))


def test_a_forward_pass_asks_the_cluster_for_one_gpu(fresh: Project) -> None:
    assert asked(fresh)["gpu"] == "1"


def test_another_config_on_the_command_line_does_not_lose_the_device(fresh: Project) -> None:
    assert asked(fresh, "--config", "studies=[small_phantom]")["gpu"] == "1"


def test_a_cluster_without_gpus_says_device_cpu(fresh: Project) -> None:
    assert asked(fresh, "--config", "device=cpu")["gpu"] == "0"


def test_memory_and_time_grow_on_each_retry_up_to_the_limit(fresh: Project) -> None:
    found = [asked(fresh, "--attempt", str(attempt)) for attempt in (1, 2, 3)]
    assert [one["mem_mb"] for one in found] == ["4000", "8000", "12000"]
    assert [one["runtime"] for one in found] == ["240", "480", "720"]
    settings = fresh.folder / "profiles" / "slurm" / "cluster.yaml"
    settings.write_text(yaml.safe_dump({"limits": {"mem_mb": 9000, "runtime": 300}}))
    capped = asked(fresh, "--attempt", "3")
    assert (capped["mem_mb"], capped["runtime"]) == ("9000", "300")


def test_the_lines_on_gpus_name_every_rule_that_uses_one(fresh: Project) -> None:
    """Uncommented, they give GPU jobs their partition and type, and no other job."""
    text = profile(with_gpu_lines=True)
    settings = yaml.safe_load(text)["set-resources"]
    wanted = {"slurm_partition": "gpu", "gpu_model": "a100"}
    named = {rule for rule, resources in settings.items() if resources == wanted}
    assert named == {name for name, text in rules().items() if re.search(r"^ +gpu=", text, re.M)}
    (fresh.folder / "profiles" / "slurm" / "config.yaml").write_text(text)
    found = asked(fresh)
    assert (found["slurm_partition"], found["gpu_model"], found["gpu"]) == ("gpu", "a100", "1")


def test_the_profile_speaks_of_rules_that_exist() -> None:
    settings = yaml.safe_load(profile(with_gpu_lines=True))
    named = {*settings["set-resources"], *settings["groups"]}
    assert named <= rules().keys()
    # a group runs one job after another: its rules say so, to ask for no more than one needs
    assert {rule for rule, asks in settings["set-resources"].items() if "turn" in asks} == set(
        settings["groups"]
    )


def test_every_rule_that_is_submitted_says_its_memory_and_time() -> None:
    local = re.search(r"localrules:\n((?:    \w+,\n)+)", (ROOT / "Snakefile").read_text())
    assert local is not None
    names = set(re.findall(r"\w+", local[1]))
    assert names <= rules().keys()
    for name, text in rules().items():
        if name not in names:
            assert "mem_mb=memory(" in text and "runtime=minutes(" in text, name


def test_a_finished_study_has_nothing_to_submit(project: Project) -> None:
    assert not project.plan(*PROFILE)


def test_a_dry_run_needs_no_slurm_on_the_machine(
    fresh: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = shutil.which("which")
    assert found is not None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "which").symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert asked(fresh)["gpu"] == "1"


def test_logs_of_a_local_run_lead_to_the_failed_job_first(project: Project) -> None:
    wrong = model("mlp_mixer:MlpMixer", "Wrong", {"img_size": 64, "patch_size": 8})
    project.edit(
        "zoo/small_phantom.yaml", lambda zoo: zoo.update(wrong=wrong, new=model("linear", "N"))
    )
    assert project.run().code != 0
    text = project.stamp("logs", "small_phantom").text
    lines = text.splitlines()
    assert re.match(r"run of .*: \.snakemake/log/.*\.snakemake\.log$", lines[0])
    assert lines[1].startswith("1 failed, ")
    assert lines[3:5] == [
        "failed     train small_phantom wrong",
        f"    {'log':<22} results/small_phantom/logs/train/wrong.log",
    ]
    assert "finished   train small_phantom new" in lines
    only = project.stamp("logs", "--failed").text
    assert "finished " not in only.partition("\n\n")[2]
    assert "    | AssertionError: " in only
    assert "did you mean 'small_phantom'?" in project.stamp("logs", "small_phanton").text
