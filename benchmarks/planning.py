"""How long ``snakemake -n`` takes for studies of the paper's size, and what of it is Snakemake's.

The same graph of jobs is planned twice: by the project's own rules, and by plain rules with an
empty script that know nothing but which file needs which. The difference is what configuration,
digests and input functions of ours cost.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from benchmarks import ROOT, filed
from benchmarks.row import Row
from benchmarks.timing import alternate

ROUNDS = 3
MANY = 1_000  # models of the largest study, planned once
LIMIT = 20 / 44  # of what the code of the time took when the limit was set, on one machine
PARTS = ("Snakefile", "rules", "workflow", "profiles", "config")
MULTILABEL, MULTICLASS = 44, 27
SHIFTS = ("gaussian_noise", "gaussian_blur", "contrast", "occlusion")
PLAIN = """
import json
NEEDS = json.load(open("needs.json"))


rule all:
    default_target: True
    input: NEEDS["all"],
"""
PLAIN_RULE = """

rule {name}:
    output: "{name}/{{number}}",
    input: lambda wildcards: NEEDS[f"{name}/{{wildcards.number}}"],
    script: "nothing.py"
"""


def snakemake(folder: Path, *arguments: str) -> str:
    """What Snakemake prints; a run that fails is an error."""
    dropped = ("SNAKEMAKE_PROFILE", "PYTHONPATH")
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *arguments],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key not in dropped},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return done.stdout


def plan(folder: Path, *arguments: str) -> str:
    return snakemake(folder, "-n", "--cores", "8", *arguments)


def plain_display(folder: Path) -> None:
    """Let Snakemake print its table of jobs, which is read here, instead of a live display."""
    profile = folder / "profiles" / "default" / "config.yaml"
    lines = profile.read_text().splitlines(keepends=True)
    profile.write_text("".join(line for line in lines if not line.startswith("logger:")))


def write_yaml(path: Path, document: Any) -> None:
    path.write_text(yaml.safe_dump(document, sort_keys=False))


def write_zoo(folder: Path, study: str, number: int) -> None:
    """The study's zoo with its models repeated under new names until there are ``number``."""
    file = folder / "config" / "zoo" / f"{study}.yaml"
    entries = list(yaml.safe_load(file.read_text()).items())
    repeated = (entries[index % len(entries)] for index in range(number))
    write_yaml(file, {f"{key}-{index:02d}": entry for index, (key, entry) in enumerate(repeated)})


def write_targets(folder: Path, study: str, targets: dict[str, Any]) -> None:
    """The study with other targets."""
    file = folder / "config" / "studies" / f"{study}.yaml"
    write_yaml(file, {**yaml.safe_load(file.read_text()), "targets": targets})


def copy_parts(folder: Path) -> None:
    """What planning needs of the project."""
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
        copy(ROOT / part, folder / part)


def large_project(folder: Path) -> None:
    """The project with 44 multilabel models on four targets and 27 multiclass ones on five."""
    folder.mkdir()
    copy_parts(folder)
    plain_display(folder)
    write_zoo(folder, "phantom", MULTILABEL)
    write_zoo(folder, "digits", MULTICLASS)
    hospitals = ("north", "south", "coast", "clinic")
    external = {name: {"dataset": "phantom", "domains": [name]} for name in hospitals}
    write_targets(folder, "phantom", external)
    shifts: dict[str, Any] = {
        shift: {"dataset": "digit_shifts", "domains": [f"{shift}-{level}" for level in range(1, 6)]}
        for shift in SHIFTS
    }
    write_targets(folder, "digits", {"uci": {"dataset": "uci_digits"}, **shifts})


def plain_project(folder: Path, dot: str) -> None:
    """Plain rules with the jobs of a graph that ``snakemake --dag`` printed."""
    folder.mkdir()
    shutil.copytree(ROOT / "profiles", folder / "profiles")
    plain_display(folder)
    labels = re.findall(r'^\s*(\d+)\[label = "(\w+)', dot, re.MULTILINE)
    files = {node: "all" if rule == "all" else f"{rule}/{node}" for node, rule in labels}
    needs: dict[str, list[str]] = {file: [] for file in files.values()}
    for source, node in re.findall(r"^\s*(\d+) -> (\d+)", dot, re.MULTILINE):
        needs[files[node]].append(files[source])
    rules = sorted({rule for _, rule in labels} - {"all"})
    (folder / "needs.json").write_text(json.dumps(needs))
    (folder / "nothing.py").touch()
    text = PLAIN + "".join(PLAIN_RULE.format(name=rule) for rule in rules)
    (folder / "Snakefile").write_text(text)


def trivial_project(folder: Path) -> None:
    """One rule, one job."""
    folder.mkdir()
    shutil.copytree(ROOT / "profiles", folder / "profiles")
    plain_display(folder)
    (folder / "Snakefile").write_text(
        'rule all:\n    output: "done",\n    shell: "touch {output}"\n'
    )


def jobs(text: str) -> int:
    """The total of a dry run's table of jobs."""
    found = re.search(r"^total\s+(\d+)", text, re.MULTILINE)
    if found is None:
        raise RuntimeError("the dry run printed no table of jobs")
    return int(found[1])


def cpu_of(run: Callable[[], str]) -> tuple[float, str]:
    """The CPU seconds of the processes that a run starts, and what it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, printed


def of_many() -> list[Row]:
    """CPU seconds to plan a study of 1,000 models, beside other ways to plan as many.

    The others are the code of the time when the limit was set, and plain rules.
    """
    what, phantom = f"planning {MANY:,} models", ("--config", "studies=[phantom]")
    with TemporaryDirectory() as name:
        own, plain, before = (Path(name) / each for each in ("own", "plain", "before"))
        own.mkdir()
        copy_parts(own)
        filed.unpack(before)
        for folder in (own, before):
            plain_display(folder)
            write_zoo(folder, "phantom", MANY)
        plain_project(plain, snakemake(own, "--dag", *phantom))
        now, printed = cpu_of(lambda: plan(own, *phantom))
        bare, _ = cpu_of(lambda: plan(plain))
        then, printed_then = cpu_of(lambda: plan(before, *phantom))
    sizes = f"{jobs(printed):,} and {jobs(printed_then):,} jobs"
    return [
        Row(
            what,
            now / then,
            "of before",
            f"<= {LIMIT:.2f}",
            f"{now:.3g} and {then:.3g} CPU s, {sizes}",
        ),
        Row(
            what,
            now / bare,
            "of plain rules",
            "",
            f"{now:.3g} and {bare:.3g} CPU s for as many jobs",
        ),
    ]


def main() -> list[Row]:
    """Seconds to plan, the same jobs under plain rules, and Snakemake's bare start."""
    return [*of_paper_size(), *of_many()]


def of_paper_size() -> list[Row]:
    """Seconds of wall time for as many models as the paper has, the median of some rounds."""
    with TemporaryDirectory() as name:
        large, plain, trivial = (Path(name) / each for each in ("large", "plain", "trivial"))
        large_project(large)
        plain_project(plain, snakemake(large, "--dag"))
        trivial_project(trivial)
        printed: dict[str, str] = {}
        times = alternate(
            {
                "large": lambda: printed.update(large=plan(large)),
                "plain": lambda: printed.update(plain=plan(plain)),
                "trivial": lambda: plan(trivial),
                "version": lambda: snakemake(trivial, "--version"),
            },
            ROUNDS,
        )
    number, same = jobs(printed["large"]), jobs(printed["plain"])
    seconds = {key: time.wall for key, time in times.items()}
    size = f"{MULTILABEL} + {MULTICLASS} models, nine targets, {number:,} jobs"
    ours = seconds["large"] - seconds["plain"]
    return [
        Row("planning a large study (snakemake -n)", seconds["large"], "s", "< 15 s", size),
        Row("planning as many jobs with plain rules", seconds["plain"], "s", "", f"{same:,} jobs"),
        Row("planning one job", seconds["trivial"], "s"),
        Row("snakemake --version", seconds["version"], "s"),
        Row(
            "planning, the project's own part",
            ours,
            "s",
            "",
            f"{ours / seconds['large']:.0%} of the whole",
        ),
    ]
