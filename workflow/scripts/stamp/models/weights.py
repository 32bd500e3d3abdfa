"""Weights files: safetensors, or a plain state dict; nothing that could carry code is unpickled."""

from __future__ import annotations

import hashlib
import os
import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch
from torch import nn

from stamp.core.artifacts import atomic_write, sort_header
from stamp.core.errors import UserError, suggest
from stamp.core.file_digest import check_sha256, sha256_of
from stamp.models.hub import is_commit

State = dict[str, torch.Tensor]
Allowed = Callable[[str], bool]

NESTED = ("state_dict", "model")  # where training scripts keep the weights among other things
ORIGINS = ("file", "url", "hub")
ATTEMPTS, PAUSE = 3, 2.0  # of a download from the hub, and seconds before the second


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its kind."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def refused(path: Path, error: pickle.UnpicklingError) -> UserError:
    """What is said of a pickle that asks for more than weights, by the name it asks for."""
    name = re.search(r"GLOBAL ([\w.]+)", str(error))
    if name is None:
        return UserError(f"{path}: can't be read as weights and nothing else; use safetensors")
    return UserError(
        f"{path}: holds more than weights and was refused (it asks for '{name.group(1)}'); "
        "use safetensors"
    )


def read_state(path: Path, prefix: str = "") -> State:
    """The tensors of a weights file by name; with ``prefix``, those under it, without it."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            state: Any = load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise UserError(f"{path}: no such weights file") from None
    except pickle.UnpicklingError as error:
        raise refused(path, error) from None
    except Exception as error:
        line = first_line(error)
        if "TorchScript archive" in line:  # torch would advise to run whatever is in there
            line = "it is a program, so source: torchscript"
        raise UserError(f"{path}: can't be read as weights: {line}") from None
    return plain(state, path, prefix)


def plain(state: Any, path: Path, prefix: str = "") -> State:
    """The tensors in what a file held, wherever a training script put them."""
    for key in NESTED:
        if isinstance(state, Mapping) and isinstance(state.get(key), Mapping):
            state = state[key]
    if not isinstance(state, Mapping):
        raise UserError(f"{path}: holds no named weights, but a {type(state).__name__}")
    tensors = {
        str(name)[len(prefix) :]: value
        for name, value in state.items()
        if isinstance(value, torch.Tensor) and str(name).startswith(prefix)
    }
    if not tensors and prefix:
        starts = {f"{str(name).partition('.')[0]}." for name in state}
        raise UserError(
            f"{path}: no weight's name starts with '{prefix}': {suggest(prefix, starts)}"
        )
    return tensors


def _never(name: str) -> bool:
    return False


def fit(
    module: nn.Module,
    state: Mapping[str, torch.Tensor],
    where: str | Path,
    allow_missing: Allowed = _never,
    allow_extra: Allowed = _never,
) -> None:
    """Load tensors into ``module``; all must be there and fit, but for names that are allowed."""
    own = module.state_dict()
    missing = [name for name in own if name not in state and not allow_missing(name)]
    extra = [name for name in state if name not in own and not allow_extra(name)]
    shapes = [name for name in state if name in own and state[name].shape != own[name].shape]
    for names, verb in ((missing, "lacks"), (extra, "has an unknown")):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            hint = _prefix(state, own)
            raise UserError(
                f"{where}: does not fit the architecture: {verb} '{names[0]}'{more}{hint}"
            )
    if shapes:
        found, wanted = (list(each[shapes[0]].shape) for each in (state, own))
        raise UserError(
            f"{where}: does not fit the architecture: '{shapes[0]}' is {found}, not {wanted}"
        )
    module.load_state_dict({name: state[name] for name in own if name in state}, strict=False)


def _prefix(state: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    """A hint where names fit but for what a training script put before all of them."""
    starts = {name.partition(".")[0] + "." for name in state}
    start = starts.pop() if len(starts) == 1 else ""
    if start and any(name.removeprefix(start) in own for name in state):
        return f": its names begin with '{start}', so give prefix: {start}"
    return ""


def read_weights(
    module: nn.Module,
    path: Path,
    prefix: str = "",
    allow_missing: Allowed = _never,
    allow_extra: Allowed = _never,
) -> None:
    """Load a weights file into ``module``; every parameter must be there and fit.

    ``prefix`` takes the part of the file under that name; ``allow_missing`` and ``allow_extra`` say
    which names of the module may be absent, and which of the file the module may lack.
    """
    fit(module, read_state(path, prefix), path, allow_missing, allow_extra)


def located(origin: Mapping[str, Any], what: str) -> Path:
    """The local file of ``file``, ``url`` or ``hub`` (and its ``hub_file``), its digest checked.

    ``hub_file`` may be several names: the first that the repository has is taken.
    """
    given = [key for key in ORIGINS if key in origin]
    if len(given) != 1:
        raise UserError(
            f"{what}: its weights come from one of {', '.join(ORIGINS)}; "
            f"{' and '.join(given) or 'none'} is given"
        )
    if given == ["url"]:
        return _downloaded(origin["url"], origin.get("sha256"))
    path = Path(origin["file"]) if given == ["file"] else _from_hub(origin, what)
    if not path.is_file():
        raise UserError(f"{path}: no such weights file")
    if "sha256" in origin:
        check_sha256(path, origin["sha256"])
    return path


def _downloaded(url: str, sha256: str | None) -> Path:
    """A file from a URL, kept beside torch's own downloads."""
    download = import_module("stamp.data.transfer.fetch")  # by name: it decides no number
    name = Path(urlsplit(url).path).name or "weights"
    folder = Path(torch.hub.get_dir()) / "stamp" / hashlib.sha256(url.encode()).hexdigest()[:12]
    return download.fetch(download.Remote(url, name, sha256=sha256), folder)


def _from_hub(origin: Mapping[str, Any], what: str) -> Path:
    """A file of a repository, from the hub's cache if it is there, else from the hub into it.

    So a branch such as ``main``, which is what no ``revision`` means, is resolved once: later jobs
    use the commit that the cache holds. :func:`hub_record` says which that is.
    """
    named, revision = origin.get("hub_file", "model.safetensors"), origin.get("revision")
    repo, names = origin["hub"], [named] if isinstance(named, str) else list(named)
    try:
        revision = whole_commit(repo, revision)
        for name in names:
            if found := _cached(repo, name, revision):
                return found
        return _first_of(repo, names, revision)
    except Exception as error:
        quoted = " or ".join(f"'{name}'" for name in names)
        line = f"{quoted} of '{repo}' can't be had from the hub: {hub_failure(error, revision)}"
        raise UserError(f"{what}: {line}") from None


def whole_commit(repo: str, revision: str | None) -> str | None:
    """The commit that begins with a revision of some digits only; any other revision as it is.

    The hub gives no file for such a revision, so the cache is asked, and then the repository's
    history.
    """
    if not is_commit(revision) or len(str(revision)) == 40:
        return revision
    from huggingface_hub import HfApi, constants
    from huggingface_hub.file_download import repo_folder_name

    folder = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repo, repo_type="model")
    known = {path.name for path in (folder / "snapshots").glob(f"{revision}*")}
    if not known:
        history = retried(lambda: HfApi().list_repo_commits(repo))
        known = {one.commit_id for one in history if one.commit_id.startswith(str(revision))}
    return known.pop() if len(known) == 1 else revision


def _cached(repo: str, name: str, revision: str | None) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(repo, name, revision=revision)
    return Path(found) if isinstance(found, str) else None


def _first_of(repo: str, names: Sequence[str], revision: str | None) -> Path:
    """The first of these files that the repository has."""
    try:
        return retried(lambda: _fetched(repo, names[0], revision))
    except Exception as error:
        if len(names) == 1 or not absent(error):
            raise
    return _first_of(repo, names[1:], revision)


def _fetched(repo: str, name: str, revision: str | None) -> Path:
    """A file from the hub. The ETag of a large one is its sha256: then it is checked.

    The client itself checks the size only. A file that is not what it should be is deleted.
    """
    from huggingface_hub import hf_hub_download

    try:
        path = Path(hf_hub_download(repo, name, revision=revision))
    except RuntimeError as error:  # of hf_xet, which has no classes for failed transfers
        raise TransferError(first_line(error)) from None
    etag = hub_record(path).get("etag", "")
    if re.fullmatch("[0-9a-f]{64}", etag) and sha256_of(path) != etag:
        path.resolve().unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        raise TransferError("what arrived is not what the hub announced")
    return path


class TransferError(Exception):
    """A file did not arrive, or not as it was sent; another attempt may cure it."""


def hub_record(path: Path) -> dict[str, str]:
    """What a file in the hub's cache is, in the words of a ``load`` block; else nothing.

    The cache keeps ``models--<owner>--<name>/snapshots/<commit>/<file>``, as a link to a blob that
    is named after its ETag.
    """
    found = re.search(r"/models--([^/]+)/snapshots/([^/]+)/(.+)$", path.as_posix())
    if found is None:
        return {}
    repo, commit, name = found.groups()
    record = {"hub": repo.replace("--", "/"), "hub_file": name, "revision": commit}
    return {**record, "etag": Path(os.readlink(path)).name} if path.is_symlink() else record


def retried(call: Callable[[], Any]) -> Any:
    """What ``call`` gives, tried again after a longer and longer pause while the hub is at fault.

    The hub's client has retries of its own within each attempt, and no use of partial files.
    """
    import tenacity

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(_passing),
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        wait=tenacity.wait_exponential(PAUSE, max=60.0) + tenacity.wait_random(0, PAUSE),
        reraise=True,
    )(call)


def absent(error: BaseException) -> bool:
    """Whether the hub was asked, and its repository has no such file."""
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    return isinstance(error, EntryNotFoundError) and not isinstance(error, LocalEntryNotFoundError)


def _status(error: BaseException) -> int | None:
    return getattr(getattr(error, "response", None), "status_code", None)


def unreached(error: BaseException) -> bool:
    """Whether the connection failed, in the words of whichever HTTP library the client uses."""
    from huggingface_hub.errors import OfflineModeIsEnabled

    library = type(error).__module__.partition(".")[0].rstrip("0123456789")
    if isinstance(error, (ConnectionError, TimeoutError)):
        return not isinstance(error, OfflineModeIsEnabled)
    return library in ("httpx", "httpcore", "requests", "urllib")


def _passing(error: BaseException) -> bool:
    """Whether another attempt may cure a failure: of the connection, or of a busy hub."""
    from huggingface_hub.errors import LocalEntryNotFoundError

    if isinstance(error, LocalEntryNotFoundError):
        return error.__cause__ is not None and _passing(error.__cause__)
    if (status := _status(error)) is not None:
        return status in (408, 429) or status >= 500
    wrong_size = isinstance(error, OSError) and "Consistency check failed" in str(error)
    return unreached(error) or wrong_size or isinstance(error, TransferError)


def hub_failure(error: BaseException, revision: str | None = None) -> str:
    """Why the hub gave no file, in one line; the client's own texts take several."""
    from huggingface_hub import errors

    if isinstance(error, errors.LocalEntryNotFoundError) and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled)):
        return "it is not in the cache, and the hub's client is offline (HF_HUB_OFFLINE)"
    if isinstance(error, errors.RevisionNotFoundError):
        return f"there is no revision '{revision}'"
    if isinstance(error, errors.GatedRepoError):
        return "access has to be granted first, on its page, and HF_TOKEN to be set"
    if isinstance(error, errors.RepositoryNotFoundError):
        return "there is no such repository, or HF_TOKEN has no access to it"
    if absent(error):
        return f"there is no such file at revision '{revision or 'main'}'"
    if (status := _status(error)) is not None:
        return f"the hub answers with status {status}"
    if unreached(error):
        return f"the connection failed ({first_line(error)})"
    return first_line(error)


def write_weights(module: nn.Module, path: Path, metadata: Mapping[str, Any]) -> None:
    """Write a module's state as safetensors with its metadata."""
    from safetensors.torch import save

    state = {name: tensor.contiguous() for name, tensor in module.state_dict().items()}
    with atomic_write(path) as part:
        told = {key: str(value) for key, value in metadata.items()}
        part.write_bytes(save(state, told))  # `save_file` would leave a file behind when killed
        sort_header(part)
