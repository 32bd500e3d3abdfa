"""A rule's code is its script and what that imports, no more and no less."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stamp.core import code_digest as digest

SCRIPTS = digest.LIBRARY.parent


def reached(script: str, *modules: str) -> set[str]:
    return set(digest.reached(SCRIPTS / script, modules))


def test_figures_are_far_from_forward_passes_and_the_other_way_round() -> None:
    assert not any(name.startswith("stamp.report.figures") for name in reached("logits.py"))
    assert not any(name.startswith("stamp.models") for name in reached("leaderboard.py"))
    assert "stamp.inference.logits" not in reached("score.py")
    assert "stamp.scoring.stamp" in reached("score.py")


def test_wording_and_progress_bars_do_not_count() -> None:
    assert not reached("logits.py") & digest.NEUTRAL


def test_a_named_module_counts_with_what_it_imports() -> None:
    assert "stamp.data.phantom.anatomy" not in reached("make_dataset.py")
    assert "stamp.data.phantom.anatomy" in reached("make_dataset.py", "stamp.data.adapters.phantom")


def test_the_walk_finds_every_module_that_really_is_imported() -> None:
    for script in ("score.py", "evaluate.py", "correlate.py", "calibrate.py", "pixels.py"):
        code = (
            f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); import runpy; "
            f"runpy.run_path({str(SCRIPTS / script)!r}, run_name='read'); "
            "print(*[name for name in sys.modules if name.split('.')[0] == 'stamp'])"
        )
        loaded = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout.split()
        assert set(loaded) - digest.NEUTRAL <= reached(script), script


def test_an_edit_changes_the_digest_of_those_who_import_it_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "scripts"
    shutil.copytree(SCRIPTS, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(digest, "LIBRARY", copy / "stamp")

    def digests() -> dict[str, str]:
        digest.imports.cache_clear()
        digest.code_digest.cache_clear()
        names = ("score.py", "matched.py", "logits.py", "leaderboard.py")
        return {name: digest.code_digest(copy / name) for name in names}

    before = digests()
    (copy / "stamp" / "score.py").write_text(
        (copy / "stamp" / "score.py").read_text() + "\nX = 1\n"
    )
    after = digests()
    digest.imports.cache_clear()
    digest.code_digest.cache_clear()
    assert {name for name in before if before[name] != after[name]} == {"score.py", "matched.py"}


def test_planning_modules_import_nothing_heavy() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); "
        "import stamp.config.plan, stamp.core.device, stamp.core.code_digest, stamp.config.model_sources; "
        "heavy = {'torch', 'timm', 'scipy', 'polars', 'numpy', 'matplotlib'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
