"""Setting up answers what can go wrong on a fresh machine with one line."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from project import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "envs", tmp_path / "envs")
    return tmp_path


def install(checkout: Path, **environment: str) -> str:
    """The one line that a failing set-up says."""
    done = subprocess.run(
        ["envs/install", "envs/requirements.txt"],
        cwd=checkout,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_no_python_is_one_line(checkout: Path) -> None:
    assert install(checkout, PYTHON="python0.9").startswith("stamp: no 'python0.9' here")


def test_an_old_python_is_one_line(checkout: Path) -> None:
    old = checkout / "old"
    old.write_text('#!/bin/sh\ncase "$*" in *version_info*) exit 1;; *) echo 3.9.2;; esac\n')
    old.chmod(0o755)
    line = install(checkout, PYTHON="./old")
    assert line.startswith("stamp: Python 3.11 or newer is needed, './old' is 3.9.2")


def test_a_full_disk_is_one_line(checkout: Path) -> None:
    assert "MB are free on this disk" in install(checkout, STAMP_MIN_DISK_MB="999999999")
    assert not (checkout / ".venv").exists()


def test_no_network_is_one_line(checkout: Path) -> None:
    line = install(
        checkout,
        PIP_INDEX_URL="http://127.0.0.1:9/simple",
        PIP_EXTRA_INDEX_URL="",
        PIP_FIND_LINKS="",
        PIP_CONFIG_FILE=os.devnull,
        PIP_RETRIES="0",
    )
    assert line.startswith("stamp: the package index can't be reached")


def test_the_conda_environment_has_the_same_pins() -> None:
    environment = yaml.safe_load((ROOT / "envs" / "stamp.yaml").read_text())
    pins = next(part["pip"] for part in environment["dependencies"] if isinstance(part, dict))
    lines = (ROOT / "envs" / "requirements.txt").read_text().splitlines()
    assert pins == [line for line in lines if line and not line.startswith("#")]


def test_an_installed_environment_finds_the_library_of_its_checkout(checkout: Path) -> None:
    packages = checkout / ".venv" / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    files = ["envs/requirements.txt", "envs/requirements-test.txt"]
    wanted = subprocess.run(
        f"cat {' '.join(files)} | cksum", shell=True, cwd=checkout, capture_output=True, text=True
    )
    (checkout / ".venv" / "installed").write_text(wanted.stdout)
    subprocess.run(["envs/install", *files], cwd=checkout, check=True)
    linked = (packages / "stamp.pth").read_text().strip()
    assert linked == str(checkout / "workflow" / "scripts")
    assert (ROOT / "workflow" / "scripts" / "stamp" / "__main__.py").is_file()
