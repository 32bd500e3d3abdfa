"""A job's code is what its script reaches: a changed statement counts, words and places do not."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stamp.core import code_digest

SCRIPTS = code_digest.LIBRARY.parent
NAMES = (
    "score.py",
    "class_matched_score.py",
    "logits.py",
    "leaderboard.py",
    "pixels.py",
    "pairs.py",
)


def reached(script: str, *modules: str) -> set[str]:
    """The definitions that a script reaches, as ``room/module.py:name``."""
    places = code_digest.reached(SCRIPTS / script, modules)
    return {f"{each.file.relative_to(SCRIPTS)}:{each.name}" for each in places}


def files(script: str, *modules: str) -> set[str]:
    return {name.partition(":")[0] for name in reached(script, *modules)}


class Library:
    """A copy of the library that may be edited."""

    def __init__(self, folder: Path):
        self.scripts = folder / "scripts"
        shutil.copytree(SCRIPTS, self.scripts, ignore=shutil.ignore_patterns("__pycache__"))

    def digests(self) -> dict[str, str]:
        for cached in (code_digest.read, code_digest.definition, code_digest.code_digest):
            cached.cache_clear()
        loader = {"logits.py": ("stamp.models.loaders.timm",)}
        return {
            name: code_digest.code_digest(self.scripts / name, *loader.get(name, ()))
            for name in NAMES
        }

    def edit(self, name: str, old: str, new: str) -> None:
        file = self.scripts / "stamp" / name
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new, 1))


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    found = Library(tmp_path)
    monkeypatch.setattr(code_digest, "LIBRARY", found.scripts / "stamp")
    yield found
    for cached in (code_digest.read, code_digest.definition, code_digest.code_digest):
        cached.cache_clear()


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


def test_figures_are_far_from_forward_passes_and_the_other_way_round() -> None:
    assert not any("report/" in name for name in files("logits.py"))
    assert not any("models/" in name for name in files("leaderboard.py"))
    assert "stamp/inference/logits.py" not in files("score.py")
    assert "stamp/scoring/stamp.py:stamp" in reached("score.py")


def test_only_what_is_used_of_a_module_counts() -> None:
    assert "stamp/core/artifacts.py:write_table" in reached("pairs.py")
    assert "stamp/core/artifacts.py:write_arrays" not in reached("pairs.py")


def test_wording_and_progress_bars_do_not_count() -> None:
    neutral = {name.replace(".", "/") + ".py" for name in code_digest.NEUTRAL}
    assert all((SCRIPTS / name).is_file() for name in neutral)
    assert not files("logits.py") & neutral


def test_a_named_module_counts_with_what_it_reaches() -> None:
    assert "stamp/data/phantom/anatomy.py" not in files("make_dataset.py")
    assert "stamp/data/phantom/anatomy.py" in files(
        "make_dataset.py", "stamp.data.adapters.phantom"
    )


def test_a_module_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"stamp\.no_such"):
        code_digest.reached(SCRIPTS / "score.py", ("stamp.no_such",))


def test_every_function_that_a_run_calls_is_reached(tmp_path: Path) -> None:
    """The pairs of a small study are drawn with a profiler on: nothing ran that does not count."""
    code = """
import cProfile, pstats, sys
from types import SimpleNamespace as Space
from pathlib import Path
import polars as pl
from stamp.core.artifacts import write_table
folder, scripts = Path(sys.argv[1]), sys.argv[2]
rows = [{"image": f"{g}-{v}", "path": "", "group": str(g), "order": v, "domain": "d",
         "split": "test", "a": float(g % 2)} for g in range(30) for v in range(3)]
write_table(folder / "index.parquet", pl.DataFrame(rows), {"dataset": "d"})
import pairs
params = Space(images={"datasets": ["d"], "domains": None}, task="multilabel", classes=["a"],
    seed=0, pairs={"semantic": "temporal", "mode": "all_consecutive", "order": "order",
    "random": "different_group", "pool": "reuse", "also": {}, "same": [], "split": ["test"],
    "max_pairs": 20})
smk = Space(params=params, wildcards=Space(study="s"),
    input=Space(index=str(folder / "index.parquet")), output=[str(folder / "pairs.parquet")])
profile = cProfile.Profile()
profile.runcall(pairs.main, smk)
for file, line, name in pstats.Stats(profile).stats:
    if file.startswith(scripts) and not name.startswith("<"):
        print(f"{file[len(scripts) + 1:]}:{name}")
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), str(SCRIPTS)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(SCRIPTS)},
    )
    assert done.returncode == 0, done.stderr
    neutral = tuple(name.replace(".", "/") for name in code_digest.NEUTRAL)
    called = {name for name in done.stdout.split() if not name.startswith(neutral)}
    assert "pairs.py:main" in called and len(called) > 8
    assert called <= reached("pairs.py")


def test_a_changed_statement_changes_the_digests_of_those_who_use_it_only(library: Library) -> None:
    before = library.digests()
    library.edit("scoring/stamp.py", "EPSILON = 1e-8", "EPSILON = 1e-9")
    assert changed(before, library.digests()) == {"score.py", "class_matched_score.py"}


def test_docstrings_comments_formatting_annotations_and_messages_do_not_count(
    library: Library,
) -> None:
    before = library.digests()
    for file in sorted((library.scripts / "stamp").rglob("*.py")):
        text = re.sub(r'(?m)^(\s*)"""(?=\w)', r'\1"""Reworded: ', file.read_text())
        text = text.replace(" -> np.ndarray:\n", ":  # an array\n").replace("\n\n\n", "\n\n\n\n")
        file.write_text(text)
    library.edit("data/pairs.py", 'raise UserError(f"', 'raise UserError(f"reworded ')
    assert changed(before, library.digests()) == set()


def test_a_definition_moved_or_a_module_renamed_does_not_count(library: Library) -> None:
    before = library.digests()
    root = library.scripts / "stamp"
    (root / "scoring" / "stamp.py").rename(root / "scoring" / "correlation_ratio.py")
    for file in [*library.scripts.glob("*.py"), *root.rglob("*.py")]:
        text = file.read_text()
        text = text.replace("stamp.scoring.stamp ", "stamp.scoring.correlation_ratio ")
        text = text.replace("scoring import stamp as ", "scoring import correlation_ratio as ")
        file.write_text(text)
    assert changed(before, library.digests()) == set()


def test_names_that_change_places_count(tmp_path: Path) -> None:
    imports = "from stamp.core.artifacts import read_json, write_json\n"
    for name, call in (("one", "write_json(read_json)"), ("other", "read_json(write_json)")):
        (tmp_path / f"{name}.py").write_text(f"{imports}{call}\n")
    one, other = (code_digest.code_digest(tmp_path / f"{name}.py") for name in ("one", "other"))
    assert one != other


def test_planning_modules_import_nothing_heavy() -> None:
    code = (
        "import sys; import stamp.config.plan, stamp.core.device, stamp.core.code_digest; "
        "heavy = {'torch', 'timm', 'scipy', 'polars', 'numpy', 'matplotlib'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(SCRIPTS)},
    )
    assert done.stdout.strip() == "[]"


def test_one_definition_counts_alone_and_with_what_it_reaches() -> None:
    module = "stamp.images.stress_changes"
    digests = {name: code_digest.definition_digest(module, name) for name in ("blur", "noise")}
    assert digests["blur"] != digests["noise"]
    found = code_digest.definition_digest("stamp.images.augmentations", "brightness")
    inner = code_digest.definition_digest("stamp.images.augmentations", "brighten")
    assert found not in (inner, *digests.values())
    with pytest.raises(ValueError, match="does not define 'bloor'"):
        code_digest.definition_digest(module, "bloor")
