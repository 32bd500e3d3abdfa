"""Warm processes behave as those that Python starts: folder, environment, streams, end."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import warm

SCRIPT = """
import os, sys
print(os.getcwd(), os.environ["WORD"], sys.argv[1:], __name__, sys.stdin.read())
sys.exit(3)
"""


def test_a_script_has_its_folder_environment_arguments_and_streams(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [warm.python(), "script.py", "a", "b"],
        cwd=tmp_path,
        env={**os.environ, "WORD": "given"},
        input="read",
        text=True,
        capture_output=True,
    )
    assert done.returncode == 3, done.stderr
    assert done.stdout == f"{tmp_path} given ['a', 'b'] __main__ read\n"


def test_our_library_is_not_imported_ahead() -> None:
    code = "import sys\nassert 'torch' in sys.modules and 'stamp' not in sys.modules"
    assert subprocess.run([warm.python(), "-"], input=code, text=True).returncode == 0


def test_a_process_dies_with_its_program(tmp_path: Path) -> None:
    (tmp_path / "wait.py").write_text(
        "import os, time\nopen('pid', 'w').write(f'{os.getpid()}\\n')\ntime.sleep(300)\n"
    )
    program = subprocess.Popen([warm.python(), "wait.py"], cwd=tmp_path)
    file, deadline = tmp_path / "pid", time.monotonic() + 60
    while not (file.exists() and file.read_text().endswith("\n")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    pid = int(file.read_text())
    program.send_signal(signal.SIGKILL)
    program.wait()
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
