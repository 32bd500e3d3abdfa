"""What lies outside of this checkout: data, credentials, the hub, a cluster."""

from __future__ import annotations

import os
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from urllib.parse import urlsplit

from stamp.cli.data_argument import of_dataset
from stamp.cli.doctor.finding import ERROR, NOTE, OK, WARNING, Finding
from stamp.config.datasets import Dataset
from stamp.config.plan import Plan
from stamp.core.errors import UserError
from stamp.data import credentials as kept
from stamp.data.download import absent
from stamp.models.hub import origins

TIMEOUT = 3.0
PHYSIONET = "https://physionet.org"
SLURM = ("sbatch", "squeue", "sacct", "scancel")
EXECUTOR = "snakemake_executor_plugin_slurm"


def used_datasets(plan: Plan) -> dict[str, Dataset]:
    """The data sets of the configured studies."""
    names: dict[str, None] = {}
    for study in plan.studies.values():
        names |= dict.fromkeys([study.source.dataset])
        for target in study.targets.values():
            names |= dict.fromkeys(target.dataset)
    return {name: plan.datasets[name] for name in names}


def data_roots(plan: Plan) -> Iterator[Finding]:
    """Whether the images of each data set are there, or will be made or downloaded."""
    needless = {
        study.source.dataset
        for study in plan.studies.values()
        if all(model.precomputed for model in study.models.values())
    }
    for key, dataset in used_datasets(plan).items():
        about = f"data {key}"
        if dataset.made:
            yield Finding(OK, about, "made by the workflow")
            continue
        coming = dataset.download and (dataset.files or dataset.fetched_from)
        try:
            named = of_dataset(dataset, plan, plan.seed)
            missing = absent(named.index["path"].to_list())
        except (UserError, OSError) as mistake:
            level = NOTE if coming else ERROR
            yield Finding(level, about, f"{'is downloaded first; ' if coming else ''}{mistake}")
            continue
        if not missing:
            yield Finding(OK, about, f"{len(named.index):,} images in {dataset.root}")
        else:
            text = f"{len(missing):,} of {len(named.index):,} images are missing in {dataset.root}"
            text += "" if dataset.owned else f"; {named.help}"
            yield Finding(NOTE if coming or key in needless else ERROR, about, text)


def credentials(plan: Plan) -> Iterator[Finding]:
    """Whether credentials that a download asks for are there; they are never shown."""
    needed = {one.access for one in used_datasets(plan).values() if one.download}
    for access in sorted(needed & {"kaggle", "physionet"}):
        try:
            found = kept.for_url(access, PHYSIONET)
        except UserError as mistake:
            yield Finding(ERROR, access, str(mistake))
            continue
        where = {"kaggle": "~/.kaggle/kaggle.json", "physionet": "~/.netrc"}[access]
        text = (
            "credentials are there" if found else f"no credentials (see docs/medical.md, {where})"
        )
        yield Finding(OK if found else ERROR, access, text)
    if os.environ.get("HF_TOKEN"):
        yield Finding(OK, "HF_TOKEN", "is set")


def hub(plan: Plan | None) -> Finding:
    """Whether the hub of pretrained weights answers within a few seconds."""
    needed = plan is not None and any(
        next(origins(model.load), None)
        for study in plan.studies.values()
        for model in study.models.values()
    )
    address = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    host = urlsplit(address).hostname or address
    if os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0"):
        return Finding(NOTE, "hub", "HF_HUB_OFFLINE is set: weights come from the cache alone")
    request = urllib.request.Request(address, method="HEAD")
    try:
        urllib.request.urlopen(request, timeout=TIMEOUT).close()
    except urllib.error.HTTPError:
        pass  # it answers
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        what = "only published weights need it"
        if plan:
            what = "models of the studies need it, unless their weights are cached"
            what = what if needed else "no model needs it"
        text = f"{host} can't be reached within {TIMEOUT:g} s ({reason}); {what}"
        return Finding(WARNING if needed else NOTE, "hub", text)
    return Finding(OK, "hub", f"{host} answers")


def slurm() -> Finding:
    """Slurm's commands, and the user's accounts as Slurm tells them."""
    there = [name for name in SLURM if shutil.which(name)]
    if not there:
        return Finding(NOTE, "Slurm", "not here: runs are on this machine")
    if lacking := [name for name in SLURM if name not in there]:
        return Finding(WARNING, "Slurm", f"{', '.join(lacking)} not found: profiles/slurm needs it")
    if find_spec(EXECUTOR) is None:
        text = f"profiles/slurm needs the package {EXECUTOR.replace('_', '-')} (docs/cluster.md)"
        return Finding(NOTE, "Slurm", text)
    accounts = _accounts()
    said = f"accounts: {', '.join(accounts)}" if accounts else "no accounts are told"
    return Finding(OK, "Slurm", f"{', '.join(there)}; {said}")


def _accounts() -> list[str]:
    user = os.environ.get("USER", "")
    command = ["sacctmgr", "-nP", "show", "assoc", f"user={user}", "format=account"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = done.stdout.splitlines() if done.returncode == 0 else []
    return sorted({line.strip() for line in lines if line.strip()})
