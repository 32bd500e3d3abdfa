"""`python -m stamp doctor` says what would stop a run, and shows no secret."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from project import DATASETS, DIGITS, PHANTOM, ZOOS

from stamp.__main__ import main
from stamp.cli.doctor import access, devices, disk, software
from stamp.config.plan import read_plan

TEXTS = {"title": "made for tests", "licence": "none", "citation": "none"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration of the small studies, nothing run."""
    studies = {"small_phantom": PHANTOM, "small_digits": DIGITS}
    files = {
        "config": {"studies": list(studies), "seed": 3, "device": "cpu"},
        "datasets": {key: {**TEXTS, **each} for key, each in DATASETS.items()},
        **{f"studies/{name}": study for name, study in studies.items()},
        **{f"zoo/{name}": zoo for name, zoo in ZOOS.items()},
    }
    for name, document in files.items():
        file = tmp_path / "config" / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(document, sort_keys=False))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, list]]:
    code = main(["doctor", "--json", *arguments])
    answer = json.loads(capsys.readouterr().out)
    assert answer["ready"] == (code == 0)
    found: dict[str, list] = {}
    for one in answer["findings"]:
        found.setdefault(one["about"], []).append((one["level"], one["text"]))
    return code, found


def test_a_machine_that_can_run_the_studies_is_ready(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = told(capsys)
    assert code == 0
    assert found["configuration"] == [("ok", "small_phantom (4 models), small_digits (2 models)")]
    assert found["data small_phantom"] == [("ok", "made by the workflow")]
    assert found["hub"][0][0] == "note"


def test_images_that_are_missing_and_no_credentials_stop_a_run_and_no_secret_is_shown(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = yaml.safe_load((project / "config" / "datasets.yaml").read_text())
    sets["own"] = {**TEXTS, "adapter": "csv", "access": "form", "root": "own"}
    url = "https://www.kaggle.com/x"
    sets["far"] = {**TEXTS, "adapter": "rsna", "access": "kaggle", "download": True}
    sets["far"]["files"] = [{"name": "x.zip", "url": url}]
    (project / "config" / "datasets.yaml").write_text(yaml.safe_dump(sets))
    study = {**PHANTOM, "source": {"dataset": "own", "train": "train"}}
    study["targets"] = {"far": {"dataset": "far"}}
    (project / "config" / "studies" / "mine.yaml").write_text(yaml.safe_dump(study))
    (project / "own").mkdir()
    (project / "own" / "table.csv").write_text("file,patient\na.png,1\nb.png,2\n")
    monkeypatch.setenv("HOME", str(project))
    monkeypatch.delenv("KAGGLE_USERNAME", raising=False)
    monkeypatch.delenv("KAGGLE_KEY", raising=False)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    code, found = told(capsys, "--study", "mine")
    assert code == 1
    assert found["data own"] == [("error", "2 of 2 images are missing in own")]
    assert found["kaggle"][0][0] == "error"
    monkeypatch.setenv("KAGGLE_USERNAME", "somebody")
    monkeypatch.setenv("KAGGLE_KEY", "k-secret")
    assert main(["doctor", "--study", "mine"]) == 1
    out = capsys.readouterr().out
    assert "credentials are there" in out
    assert not {"hf_secret", "k-secret", "somebody"} & set(out.split())


def test_a_configuration_that_is_wrong_is_one_error_and_the_rest_is_told(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = told(capsys, "--study", "phantomm")
    assert code == 1
    assert "phantomm" in found["configuration"][0][1]
    assert found["Python"][0][0] == "ok"


def test_a_machine_is_looked_at_without_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    code, found = told(capsys)
    assert code == 0
    assert found["configuration"] == [
        ("note", f"no project in {tmp_path}, so only the machine was looked at")
    ]
    assert told(capsys, "--study", "mine")[0] == 1


def test_slurm_without_its_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(access, "_accounts", lambda: ["mine"])
    assert access.slurm().level == "ok"
    monkeypatch.setattr(access, "EXECUTOR", "no_such_package")
    assert (access.slurm().level, "no-such-package" in access.slurm().text) == ("note", True)


def test_what_a_study_writes_is_its_pixels_and_logits(project: Path) -> None:
    plan = read_plan(["small_digits"])
    study = plan.studies["small_digits"]
    rows = {"domain": ["a"] * 50, "split": ["test"] * 30 + ["train"] * 20}
    for name in ("mnist", "few_uci"):
        folder = project / "results" / "datasets" / name
        folder.mkdir(parents=True)
        pl.DataFrame(rows).write_parquet(folder / "index.parquet")
    size, unknown = disk.written(study, plan)
    pixel, logits = 28 * 28, 2 * 10 * 4
    calibration, tested, target, train = 100, 30, 50, 20  # the pool and those beyond it: 30
    assert size == (calibration + tested + target) * (pixel + logits) + train * pixel
    assert unknown == []
    (project / "results" / "datasets" / "few_uci" / "index.parquet").unlink()
    assert disk.written(study, plan)[1] == ["uci"]


def test_the_hub_is_asked_once_and_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    assert access.hub(None).level == "ok"
    server.shutdown()
    server.server_close()
    assert access.hub(None).level == "note"


def test_slurm_is_told_by_its_commands_and_accounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert access.slurm().level == "note"
    for name in (*access.SLURM, "sacctmgr"):
        command = tmp_path / name
        command.write_text("#!/bin/sh\necho physics\necho biology\n")
        command.chmod(0o755)
    assert access.slurm().text.endswith("accounts: biology, physics")
    (tmp_path / "sacct").unlink()
    assert "sacct" in access.slurm().text


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software, "NEEDED", ("no-such-package",))
    found = [one for one in software.findings() if one.level == "error"]
    assert [one.about for one in found] == ["no-such-package"]


def test_two_devices_that_agree_are_fine_and_others_are_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The GPU's part is played by the CPU: there is none here."""
    assert devices.compared(other="cpu").level == "ok"
    from stamp.inference import logits

    class Wrong(logits.Forward):
        calls = 0

        def __call__(self, batch: object) -> np.ndarray:
            Wrong.calls += 1
            return super().__call__(batch) + (Wrong.calls > 1 + devices.REPEATS)

    monkeypatch.setattr(logits, "Forward", Wrong)
    assert devices.compared(other="cpu").level == "error"


def test_the_driver_is_read_from_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "version"
    line = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024"
    file.write_text(f"{line}\nGCC version: gcc 12.2.0\n")
    monkeypatch.setattr(devices, "DRIVER", file)
    assert devices.driver_version() == "550.54.15"
