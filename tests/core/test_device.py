"""Each job on a machine with several GPUs has one for itself, seen with real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from itertools import combinations
from pathlib import Path

import pytest

from stamp.core import device
from stamp.core.errors import UserError

LIBRARY = Path(device.__file__).parents[2]
HOLD = """
import json, sys, time
from pathlib import Path
from stamp.core.device import take
devices, folder, seconds = sys.argv[1].split(","), Path(sys.argv[2]), float(sys.argv[3])
mine = take(devices, folder, pause=0.01)
start = time.monotonic()
print(mine, flush=True)
time.sleep(seconds)
print(json.dumps([mine, start, time.monotonic()]), flush=True)
"""


def holder(devices: str, folder: Path, seconds: float) -> subprocess.Popen[str]:
    """A process that takes a device, prints it, and keeps it for a while."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLD), devices, str(folder), str(seconds)],
        env={**os.environ, "PYTHONPATH": str(LIBRARY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def read(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.fixture(autouse=True)
def given_back(monkeypatch: pytest.MonkeyPatch):
    """What a test takes in this process is given back after it."""
    monkeypatch.setattr(device, "_held", [])
    yield
    for lock in device._held:
        os.close(lock)


def overlaps(first: tuple[str, float, float], second: tuple[str, float, float]) -> bool:
    return first[0] == second[0] and first[1] < second[2] and second[1] < first[2]


def test_no_two_live_processes_hold_one_device(tmp_path: Path) -> None:
    processes = [holder("0,1,2", tmp_path, 0.3) for _ in range(8)]
    held = [
        json.loads(process.communicate(timeout=120)[0].splitlines()[1]) for process in processes
    ]
    assert {one[0] for one in held} <= {"0", "1", "2"}
    assert not [pair for pair in combinations(held, 2) if overlaps(*pair)]


def test_as_many_processes_as_devices_hold_all_of_them_at_once(tmp_path: Path) -> None:
    processes = [holder("0,1,2", tmp_path, 60) for _ in range(3)]
    try:
        assert sorted(read(process) for process in processes) == ["0", "1", "2"]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_is_killed_frees_its_device(tmp_path: Path, how: signal.Signals) -> None:
    first = holder("GPU-a", tmp_path, 600)
    assert read(first) == "GPU-a"
    second = holder("GPU-a", tmp_path, 0)
    assert second.stderr is not None
    assert second.stderr.readline() == "waiting for a GPU: all of GPU-a are taken\n"
    assert second.poll() is None
    first.send_signal(how)
    assert read(second) == "GPU-a"
    for process in (first, second):
        process.communicate(timeout=60)


def test_a_forked_worker_keeps_the_device_that_it_may_still_use(tmp_path: Path) -> None:
    script = (
        "import os, time; from pathlib import Path; from stamp.core.device import take\n"
        f"take(['0'], Path({str(tmp_path)!r}))\n"
        "worker = os.fork()\n"
        "if worker: print(worker, flush=True)\n"
        "else: time.sleep(600)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(LIBRARY)}
    done = subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True
    )
    worker = int(read(done))
    done.wait(timeout=60)
    second = holder("0", tmp_path, 0)
    assert second.stderr is not None
    assert second.stderr.readline().startswith("waiting for a GPU")
    os.kill(worker, signal.SIGKILL)
    assert read(second) == "0"
    second.communicate(timeout=60)


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ("2,3", ["2", "3"]),
        (" GPU-8932f937, GPU-1 ", ["GPU-8932f937", "GPU-1"]),
        ("0,-1,1", ["0"]),
        ("", []),
        ("-1", []),
    ],
)
def test_restricted_devices_are_read_as_cuda_reads_them(
    listed: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    assert device.visible() == names


def test_without_restriction_the_devices_of_the_machine_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(device, "present", lambda: 3)
    assert device.visible() == ["0", "1", "2"]


def test_a_job_without_a_gpu_takes_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    for resources in ({}, {"gpu": 0}):
        assert device.claim(resources) == "cpu"
    assert not list(tmp_path.iterdir())


def test_a_claim_leaves_the_job_one_device_to_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    seen = []
    for _ in range(2):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
        assert device.claim({"gpu": 1}) == "cuda"
        seen.append(os.environ["CUDA_VISIBLE_DEVICES"])
    assert seen == ["2", "3"]


def test_two_slurm_jobs_may_each_call_their_device_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where devices are confined, Slurm numbers those of each job from 0: nobody waits."""
    monkeypatch.setattr(device.tempfile, "gettempdir", lambda: str(tmp_path))
    for job in ("11", "12"):
        monkeypatch.setenv("SLURM_JOB_ID", job)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
        assert device.claim({"gpu": 1}) == "cuda"
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "0"


def test_a_machine_without_a_gpu_is_left_to_torch_to_complain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert device.claim({"gpu": 1}) == "cuda"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


def test_auto_takes_cuda_only_where_there_is_a_device_to_see(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setattr(device, "present", lambda: 0)
    assert device.choose("auto") == "cpu"
    monkeypatch.setattr(device, "present", lambda: 1)
    assert device.choose("auto") == "cuda"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert device.choose("auto") == "cpu"
    with pytest.raises(UserError, match="did you mean 'cuda'"):
        device.choose("cud")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_of_somebody_else_is_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match="set TMPDIR"):
        device.take(["0"], tmp_path / "locks")
