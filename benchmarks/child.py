"""Code run in a Python process of its own, where start-up and peak memory can be measured."""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks import ROOT


def python(code: str, *arguments: str) -> str:
    """What ``code`` prints in a new interpreter; it finds ``arguments`` in ``sys.argv[1:]``."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "workflow" / "scripts")])
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout
