"""Write into zoo files which hub commit each model's weights are, or check that it is there.

The hub is asked through its own client, so HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE count.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from stamp.config.plan import read_project
from stamp.config.zoo import read_zoo
from stamp.core.artifacts import atomic_write
from stamp.core.errors import UserError
from stamp.models.hub import Origin, origins

HELP = "pin weights of the hub to commits in the zoo files"
EXAMPLE = "pin natural"
NAMES = ("hub_file", "hub", "timm", "name")  # the line under one of these is where a revision goes


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which zoos, which revision, and whether to write."""
    parser.add_argument("zoo", nargs="*", help="name of a zoo file; all where none is given")
    parser.add_argument(
        "--revision",
        metavar="BRANCH",
        help="the branch, tag or commit to pin, also where an entry is pinned already; "
        "without it, main of those that are not",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; exit code 1 if something is not pinned or its commit is gone",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print one line per place; 1 where one is left without a commit."""
    folder = Path(read_project().folders.zoo)
    names = arguments.zoo or sorted(file.stem for file in folder.glob("*.yaml"))
    if arguments.check and arguments.revision:
        raise UserError("--check looks at the revisions in the zoo: it takes no --revision")
    if not names:
        raise UserError(f"no zoo file in {folder}")
    bad = 0
    for name in names:
        file = folder / f"{name}.yaml"
        if arguments.check:
            found = until_unreachable(checked, places(read_zoo(file)))
        else:
            found = pin_file(
                file, arguments.revision or "main", again=arguments.revision is not None
            )
        for one in found:
            where = ".".join(one.place.path[:1] + one.place.path[2:])
            print(f"{file}: {where}: {one.commit or one.reason}")
        bad += sum(one.commit is None for one in found)
        if any(one.unreachable for one in found):
            print("the hub can't be reached: nothing further was looked up")
            return 1
    total = "not pinned" if bad else "all pinned"
    print(f"{bad} {total}" if bad else total)
    return 1 if bad else 0


@dataclass(frozen=True, slots=True)
class Place:
    """Weights of the hub in a zoo: of which model, in which part of its ``load``."""

    model: str
    origin: Origin

    @property
    def path(self) -> tuple[str, ...]:
        """The keys that lead to the mapping that names the weights."""
        part = (self.origin.part,) if self.origin.part else ()
        return (self.model, "load", *part)


@dataclass(frozen=True, slots=True)
class Found:
    """A commit, or why there is none."""

    place: Place
    commit: str | None = None
    reason: str = ""
    unreachable: bool = False


def places(zoo: Mapping[str, Mapping[str, Any]]) -> list[Place]:
    """Every place of a zoo where weights come from the hub."""
    return [Place(key, origin) for key, entry in zoo.items() for origin in origins(entry["load"])]


def repository(origin: Origin) -> tuple[str, tuple[str, ...]]:
    """The repository of weights and the names that their file may have."""
    if origin.repo is not None:
        return origin.repo, origin.files
    from stamp.models.backbones import in_the_hub

    told = in_the_hub(str(origin.tag), {})
    named = told["hub_file"]
    return told["hub"], (named,) if isinstance(named, str) else tuple(named)


class Unreachable(UserError):
    """The hub does not answer: it will not for the next place either."""


def commit_of(origin: Origin, revision: str) -> str:
    """The commit that a revision of a repository is, where it has the file; the hub is asked."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import OfflineModeIsEnabled

    from stamp.models.weights import absent, hub_failure, retried, unreached, whole_commit

    repo, names = repository(origin)
    for name in names:
        try:
            url = hf_hub_url(repo, name, revision=whole_commit(repo, revision))
            found = retried(partial(get_hf_file_metadata, url)).commit_hash
        except Exception as error:
            if absent(error) and name != names[-1]:
                continue
            gone = unreached(error) or isinstance(error, OfflineModeIsEnabled)
            kind = Unreachable if gone else UserError
            raise kind(f"{repo}: {hub_failure(error, revision)}") from None
        if found is None:
            raise UserError(f"{repo}: the hub does not say which commit '{revision}' is")
        return found
    raise UserError(f"{repo}: no file to look for")


def looked_up(place: Place, revision: str) -> Found:
    """The commit for a place, or the reason that there is none."""
    try:
        return Found(place, commit_of(place.origin, revision))
    except UserError as mistake:
        unreachable = isinstance(mistake, Unreachable)
        return Found(place, reason=str(mistake), unreachable=unreachable)


def until_unreachable(look: Callable[[Place], Found], wanted: Iterable[Place]) -> list[Found]:
    """What a look at each place found, up to the first for which the hub can't be reached."""
    found: list[Found] = []
    for place in wanted:
        found.append(look(place))
        if found[-1].unreachable:
            break
    return found


def checked(place: Place) -> Found:
    """Whether a place is pinned to a commit that the hub has."""
    if not place.origin.pinned:
        told = place.origin.revision
        return Found(place, reason=f"not pinned: its revision is '{told or 'main'}'")
    return looked_up(place, str(place.origin.revision))


def _node(root: yaml.Node, path: Sequence[str]) -> yaml.MappingNode:
    for key in path:
        root = next(value for name, value in root.value if name.value == key)
    assert isinstance(root, yaml.MappingNode)
    return root


def _edit(text: str, root: yaml.Node, place: Place, commit: str) -> tuple[int, int, str]:
    """Which part of the text is replaced by what, so that the place has this revision."""
    node = _node(root, place.path)
    held = {name.value: (name, value) for name, value in node.value}
    if "revision" in held:
        old = held["revision"][1]
        return old.start_mark.index, old.end_mark.index, commit
    if node.flow_style:
        end = node.end_mark.index - 1
        return end, end, f", revision: {commit}"
    name, value = held[next(key for key in NAMES if key in held)]
    line_end = text.find("\n", value.end_mark.index)
    at = len(text) if line_end < 0 else line_end
    return at, at, f"\n{' ' * name.start_mark.column}revision: {commit}"


def pinned(text: str, commits: Mapping[Place, str]) -> str:
    """The text of a zoo file with these revisions, everything else as it was.

    The file is edited as text, so that comments and formatting stay: YAML's own parser gives the
    position of each part, and the edited text is parsed again and compared with what was wanted.
    """
    root, wanted = yaml.compose(text), copy.deepcopy(yaml.safe_load(text))
    edits = {_edit(text, root, place, commit) for place, commit in commits.items()}
    for place, commit in commits.items():
        target = wanted
        for key in place.path:
            target = target[key]
        target["revision"] = commit
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    if yaml.safe_load(text) != wanted:
        raise UserError("the entries can't be edited in place: write the revisions by hand")
    return text


def pin_file(file: Path, revision: str, again: bool) -> list[Found]:
    """Look up what a zoo file does not pin (or all, if ``again``) and write it; what was found."""
    zoo = read_zoo(file)
    open_ones = [place for place in places(zoo) if again or not place.origin.pinned]
    found = until_unreachable(lambda place: looked_up(place, revision), open_ones)
    commits = {one.place: one.commit for one in found if one.commit is not None}
    if commits:
        try:
            text = pinned(file.read_text(), commits)
        except UserError as mistake:
            raise UserError(f"{file}: {mistake}") from None
        with atomic_write(file) as part:
            part.write_text(text)
    return found
