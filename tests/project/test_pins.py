"""The pinned packages are whole, agree with each other, and are what pyproject asks for."""

from __future__ import annotations

import tomllib
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from project import ROOT

FILES = sorted((ROOT / "envs").glob("requirements*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def pins(file: Path) -> dict[str, str]:
    """Each package of a list and its version; every line must pin one."""
    found = {}
    for line in file.read_text().splitlines():
        if line and not line.startswith("#"):
            asked = Requirement(line)
            (exact,) = asked.specifier
            assert exact.operator == "==", f"{file.name}: {line}"
            found[canonicalize_name(asked.name)] = exact.version
    return found


PINNED = {name: number for file in FILES for name, number in pins(file).items()}


def needed(name: str) -> list[Requirement]:
    """What an installed package asks for here, without its extras."""
    here = {**default_environment(), "extra": ""}
    found = [Requirement(text) for text in requires(name) or []]
    return [one for one in found if one.marker is None or one.marker.evaluate(here)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_list_names_no_package_twice_nor_one_of_another_list(file: Path) -> None:
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    names = [line.partition("==")[0] for line in lines]
    assert len(set(names)) == len(names)
    for other in FILES:
        assert other == file or not pins(file).keys() & pins(other).keys()


def test_what_a_pinned_package_needs_is_pinned_too_and_fits() -> None:
    for name, number in PINNED.items():
        installed = Version(version(name)).public  # torch's for the CPU alone is 2.13.0+cpu
        assert installed == number, f"{name}: installed is {installed}"
        for asked in needed(name):
            other = canonicalize_name(asked.name)
            if other in ("torch", "triton") or other.startswith(("nvidia", "cuda")):
                continue  # those of a build of torch for GPUs
            assert other in PINNED, f"{name} needs {asked}, which is not pinned"
            assert asked.specifier.contains(PINNED[other], prereleases=True), f"{name}: {asked}"


def test_the_run_alone_has_all_that_the_package_asks_for() -> None:
    run = pins(ROOT / "envs" / "requirements.txt")
    for asked in map(Requirement, PROJECT["dependencies"]):
        assert asked.specifier.contains(run[canonicalize_name(asked.name)]), str(asked)


def test_every_extra_is_pinned_in_one_of_the_lists() -> None:
    for extra, packages in PROJECT["optional-dependencies"].items():
        for asked in map(Requirement, packages):
            name = canonicalize_name(asked.name)
            if name != PROJECT["name"]:
                assert asked.specifier.contains(PINNED[name]), f"{extra}: {asked}"
