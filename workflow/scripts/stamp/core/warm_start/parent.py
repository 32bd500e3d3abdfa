"""The process that others are forked from: it imports packages, forks, and tells how each ended.

Started as a program with a folder for its socket. It ends when its standard input does, and what it
forked ends with it. It only imports, so that no thread is at work which a fork would lose. It keeps
nothing of our own library: a forked process imports that from its own path, as it is by then.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import selectors
import shutil
import signal
import socket
import struct
import sys
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

SOCKET, READY = "socket", "ready\n"
OWN = "stamp"
THREADS = "OMP_NUM_THREADS"
PR_SET_PDEATHSIG = 1  # linux/prctl.h
MADV_COLLAPSE = 25  # asm-generic/mman-common.h
LARGE_PAGE = 1 << 21
OFTEN = 64  # forks after which a parent gathers its memory

SCRIPTS = str(Path(__file__).resolve().parents[3])

_tried: set[str] = set()
_kept: list[ModuleType] = []  # what is imported, also modules of ours that are forgotten again


@dataclass(frozen=True, slots=True)
class Forked:
    """A process: its id, the file that is ready once it has ended, and the line to who asked."""

    pid: int
    ended: int
    line: socket.socket

    def report(self) -> None:
        """Tell how it ended, if somebody is there to be told."""
        _, status = os.waitpid(self.pid, 0)
        os.close(self.ended)
        with self.line, contextlib.suppress(OSError):
            self.line.sendall(struct.pack("!i", os.waitstatus_to_exitcode(status)))

    def kill(self) -> None:
        """End it, and its group if it leads one."""
        with contextlib.suppress(ProcessLookupError):
            if os.getpgid(self.pid) == self.pid:
                os.killpg(self.pid, signal.SIGKILL)
            os.kill(self.pid, signal.SIGKILL)


def load(names: Sequence[str]) -> None:
    """Import what is not there yet; a package that can't be had is left to who needs it.

    ``stamp.models.torchvision_ops`` is how timm is imported. What it imports stays, itself it goes.
    What packages would take apart at their end is left whole: that is nothing of a forked process.
    """
    missing = [name for name in names if name not in _tried]
    _tried.update(missing)
    sys.path.insert(0, SCRIPTS)
    for name in missing:
        with contextlib.suppress(Exception):
            _kept.append(importlib.import_module(name))
    del sys.path[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == OWN]:
        del sys.modules[name]
    if missing:
        for finalizer in list(getattr(weakref.finalize, "_registry", ())):
            finalizer.atexit = False
        gc.collect()
        gc.freeze()


def serve(folder: Path) -> dict[str, Any] | None:
    """Fork for each request; the request in a forked process, None once nobody can ask any more."""
    with socket.socket(socket.AF_UNIX) as hub, selectors.DefaultSelector() as ready:
        hub.bind(str(folder / SOCKET))
        hub.listen(256)
        ready.register(hub, selectors.EVENT_READ)
        ready.register(0, selectors.EVENT_READ)
        os.write(1, READY.encode())
        forks = 0
        while True:
            for key, _ in ready.select():
                if key.fileobj == 0:
                    for running in [one.data for one in ready.get_map().values() if one.data]:
                        running.kill()
                    return None
                if key.fileobj is hub:
                    request = answer(hub, ready)
                    if request is not None:
                        return request
                    forks += 1
                    if forks == OFTEN:
                        use_large_pages()
                elif key.fileobj == key.data.ended:
                    ready.unregister(key.data.ended)
                    with contextlib.suppress(KeyError):
                        ready.unregister(key.data.line)
                    key.data.report()
                elif key.data.line.fileno() >= 0:  # who asked has gone, and it has not ended yet
                    ready.unregister(key.data.line)
                    key.data.kill()


def use_large_pages() -> None:
    """Gather this process's memory in large pages: a fork copies the table of all its pages.

    That takes as long as it saves in some fifty forks. Linux before 6.1 refuses, and nothing is
    lost.
    """
    madvise = ctypes.CDLL(None).madvise
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, access, _, _, inode, *name = line.split()
        if (access, inode) == ("rw-p", "0") and name in ([], ["[heap]"]):
            start, end = (int(place, 16) for place in span.split("-"))
            start, end = -(-start // LARGE_PAGE) * LARGE_PAGE, end // LARGE_PAGE * LARGE_PAGE
            if start < end:
                madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), MADV_COLLAPSE)


def answer(hub: socket.socket, ready: selectors.BaseSelector) -> dict[str, Any] | None:
    """Fork for one request and tell the process's id; the request in the forked process."""
    line, _ = hub.accept()
    head, streams, _, _ = socket.recv_fds(line, 4, 3)
    with line.makefile("rb") as text:
        request = json.loads(text.read(struct.unpack("!I", head)[0]))
    load(request["imports"])
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        for each in (hub, line, ready):
            each.close()
        be_a_process(parent, streams, bool(request.get("group")))
        return dict(request)
    for stream in streams:
        os.close(stream)
    forked = Forked(pid, os.pidfd_open(pid), line)
    ready.register(forked.ended, selectors.EVENT_READ, forked)
    ready.register(line, selectors.EVENT_READ, forked)
    with contextlib.suppress(OSError):
        line.sendall(struct.pack("!i", pid))
    return None


def be_a_process(parent: int, streams: Sequence[int], group: bool) -> None:
    """In a forked process: streams of its own, and no life after the parent.

    It stays in the parent's group, where Ctrl-C reaches it, unless it shall lead one.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    if group:
        os.setpgid(0, 0)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)


def run(request: dict[str, Any], program: str) -> None:
    """Become the process that was asked for: a script, ``-m`` and a module, or ``-`` for stdin."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    limit_threads(os.environ.get(THREADS, "1"))
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    first, *more = request["arguments"]
    sys.executable, sys.excepthook = program, show
    if first == "-m":
        sys.argv = more
        sys.path[:0] = [request["folder"], *paths]
        runpy.run_module(more[0], run_name="__main__", alter_sys=True)
        return
    sys.argv = [first, *more]
    folder = request["folder"] if first == "-" else str(Path(first).resolve().parent)
    sys.path[:0] = [folder, *paths]
    customise(paths)
    text = sys.stdin.read() if first == "-" else Path(first).read_bytes()
    become(compile(text, "<stdin>" if first == "-" else first, "exec"), first)


def become(code: CodeType, name: str) -> None:
    """Run code as the main module of this process."""
    main = ModuleType("__main__")
    main.__file__ = name
    sys.modules["__main__"] = main
    exec(code, vars(main))


def limit_threads(number: str) -> None:
    """Let the libraries that read their number of threads when they are loaded have this many."""
    if number != "1":
        with contextlib.suppress(ImportError, ValueError):
            from threadpoolctl import threadpool_limits

            threadpool_limits(int(number))


def customise(paths: Sequence[str]) -> None:
    """Run the first ``sitecustomize`` of a path, as Python does when it starts."""
    for folder in paths:
        if (file := Path(folder) / "sitecustomize.py").is_file():
            exec(compile(file.read_text(), file, "exec"), {"__name__": "sitecustomize"})
            return


def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """An error's traceback without the lines of this file."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


def main(folder: Path, program: str, names: Sequence[str]) -> None:
    """Serve from a folder; forked processes call ``program`` their Python."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the jobs
    del sys.path[0]
    load(names)
    request = serve(folder)
    if request is None:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)
    signal.signal(signal.SIGINT, before)
    leave(code_of(request, program))


def code_of(request: dict[str, Any], program: str) -> int:
    """Run what was asked for; the exit code that Python would have."""
    try:
        run(request, program)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    except KeyboardInterrupt:
        raise  # Python ends itself by the signal
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def leave(code: int) -> None:
    """End with what a program asked to be done at its end, but take nothing apart.

    Python would write to every object of torch and the others, whose memory is shared until then.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
