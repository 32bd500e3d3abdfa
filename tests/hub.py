"""A Hugging Face hub on the loopback interface, and a process that downloads from it.

    with Hub(folder) as hub, Client(hub.endpoint, home) as client:
        commit = hub.push("timm/test_vit.r160_in1k", {"model.safetensors": content})
        found = client.load({"source": "timm", "name": "test_vit.r160_in1k", ...})
        assert found["origin"]["revision"] == commit

The hub answers with what the real client reads: ``X-Repo-Commit``, ETags (the content's sha256, as
of large files), lengths, ranges, ``X-Error-Code``, a repository's history and, if ``linked``,
redirects to another host.
Faults are those of :class:`servers.Server`, and :meth:`Hub.garble`. The client's settings are read
when its package is imported, so it is a process of its own; run as a program, this file is it.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from servers import Server

LIBRARY = Path(__file__).resolve().parents[1] / "workflow" / "scripts"
PATIENCE = 0.02  # share of every pause that the client really waits


class Hub(Server):
    """Serves repositories at ``/<repo>/resolve/<revision>/<file>``, each file whole or by parts."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.gated: set[str] = set()
        self._commits: dict[tuple[str, str], str] = {}
        self._history: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._garbled = 0
        self._http.RequestHandlerClass = _handler(self, self._http.RequestHandlerClass)

    def __enter__(self) -> Hub:
        super().__enter__()
        return self

    @property
    def endpoint(self) -> str:
        return self.url("").rstrip("/")

    def push(
        self, repo: str, files: Mapping[str, bytes], branch: str = "main", linked: bool = False
    ) -> str:
        """A new commit with these files, which the branch then points to; ``linked``, by a CDN."""
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        commit = hashlib.sha1(f"{repo} {json.dumps(digests, sort_keys=True)}".encode()).hexdigest()
        for revision in (commit, branch):
            self._commits[repo, revision] = commit
            for name, content in files.items():
                self._write(f"{repo}/resolve/{revision}/{name}", content)
                if linked:
                    self._write(f"cdn/{digests[name]}", content)
                    there = self.url(f"cdn/{digests[name]}", host="localhost")
                    self.redirect(f"{repo}/resolve/{revision}/{name}", there)
        made = {"id": commit, "title": "", "message": "", "date": "2024-02-10T12:00:00.000Z"}
        history = self._history.setdefault((repo, branch), [])
        history.insert(0, {**made, "authors": [{"user": "somebody"}]})
        self._write(f"api/models/{repo}/commits/{branch}", json.dumps(history).encode())
        return commit

    def _write(self, path: str, content: bytes) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    def garble(self, times: int) -> None:
        """Send as many bytes as announced, but others, for the next ``times`` bodies."""
        self._garbled = times

    def bodies(self) -> int:
        """How many answers carried content."""
        return sum(1 for one in self.requests if one.sent)

    def forget(self) -> None:
        """Faults and requests so far."""
        self.requests.clear()
        self.cut(0, times=0)
        self.busy(0)
        self.garble(0)

    def describe(self, path: str) -> dict[str, str]:
        """The headers that say which commit and content the address of a file stands for."""
        repo, _, rest = path.strip("/").partition("/resolve/")
        revision, _, name = rest.partition("/")
        commit = self._commits.get((repo, revision))
        if repo in self.gated:
            return {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"}
        if not any(known == repo for known, _ in self._commits):
            return {"X-Error-Code": "RepoNotFound"}
        if commit is None:
            return {"X-Error-Code": "RevisionNotFound"}
        file = self.folder / repo / "resolve" / commit / name
        if not file.is_file():
            return {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        linked = {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(file.stat().st_size)}
        return {"X-Repo-Commit": commit, "ETag": f'"{digest}"', **linked}


def _handler(hub: Hub, base: Any) -> Any:
    class Handler(base):
        def reply(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
            if status in (302, 404):
                headers = {**headers, **hub.describe(self.seen.path)}
            refused = headers.get("X-Error-Code") == "GatedRepo"
            super().reply(403 if refused else status, headers, body)

        def validators(self, file: Path) -> dict[str, str]:
            return super().validators(file) | hub.describe(self.seen.path)

        def body(self, file: Path, start: int, end: int) -> None:
            self.garbled = hub._garbled > 0
            hub._garbled -= self.garbled
            super().body(file, start, end)

        def write(self, block: bytes) -> None:
            super().write(bytes(~byte & 255 for byte in block) if self.garbled else block)

    return Handler


class Client:
    """A process with a cache of its own that loads models; its answers are plain dictionaries."""

    def __init__(self, endpoint: str, home: Path, **environment: str):
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.lower().endswith("_proxy") and not key.startswith(("HF_", "HUGGING"))
        }
        kept |= {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "PYTHONPATH": str(LIBRARY)}
        kept |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "OMP_NUM_THREADS": "1", **environment}
        self.home = home
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            env=kept,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.communicate()

    def ask(self, **question: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def load(self, block: Mapping[str, Any], classes: int = 1000) -> dict[str, Any]:
        """Digest of the weights and origin of a model, or the ``error`` in one line."""
        self.ask(block=block, classes=classes)
        return self.answer()

    def cached(self) -> list[str]:
        """The files of the cache with content or under a name, by name."""
        files = (self.home / "hub").rglob("*")
        kept = [file for file in files if {"blobs", "snapshots"} & set(file.parts)]
        return sorted(file.name for file in kept if file.is_symlink() or file.is_file())


def digest(state: Mapping[str, Any]) -> str:
    """A digest of named tensors."""
    total = hashlib.sha256()
    for name in sorted(state):
        total.update(name.encode() + state[name].contiguous().numpy().tobytes())
    return total.hexdigest()


def started(kind: str, settings: Mapping[str, Any]) -> tuple[Any, dict[str, str]]:
    """What a small test network starts from, without its classifier, and the weights' origin."""
    from stamp.models.loaders import finetune as finetuned
    from stamp.models.loaders import probe as probed

    pixels = {"size": 160, "channels": 3}
    if kind == "probe":
        found = probed.backbone({"backbone": settings, "preprocessing": pixels})
        module: Any = found.module
        return module.network, dict(found.origin)
    block = {"arch": "test_resnet", "initial": settings, "preprocessing": pixels}
    loaded = finetuned.network(block, ["a", "b"])
    network: Any = loaded.module
    network.reset_classifier(0)
    return network, dict(loaded.origin)


def serve() -> None:
    """Load what the lines of the standard input ask for, one line of answer each."""
    pause: Any = time.sleep
    time.sleep = lambda seconds: pause(float(seconds) * PATIENCE)
    from stamp.core.errors import UserError
    from stamp.models.backbones import from_hub
    from stamp.models.loaders.registry import load_model

    for line in sys.stdin:
        question = json.loads(line)
        try:
            if "backbone" in question:
                module, origin = from_hub(question["backbone"], {}, 0, 3)
            elif "start" in question:
                module, origin = started(question["start"], question["settings"])
            else:
                names = [f"c{number}" for number in range(question["classes"])]
                loaded = load_model(question["block"], names, None)
                module, origin = loaded.module, dict(loaded.origin)
            answer = {"digest": digest(module.state_dict()), "origin": origin}
        except UserError as mistake:
            answer = {"error": str(mistake)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
