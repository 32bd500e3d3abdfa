"""A real Slurm on this machine: munged, slurmctld and slurmd of Debian's packages, with fake GPUs.

Nothing is contained here, neither memory nor devices: this is for testing what is scheduled. The
configuration has to be in /etc/slurm, because the executor drops SLURM_CONF before `srun`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "sinfo")
ETC = Path("/etc/slurm")
HOSTS = Path("/etc/hosts")
MARK = "# written by STAMP's tests in"
PATIENCE = 120

SLURM = """\
{mark} {base}
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={base}/munge.socket
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmctldPort=16817
SlurmdPort=16818
SrunPortRange=16900-16999
SlurmctldPidFile={base}/slurmctld.pid
SlurmdPidFile={base}/slurmd.pid
SlurmctldLogFile={base}/slurmctld.log
SlurmdLogFile={base}/slurmd.log
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool
MpiDefault=none
MailProg=/bin/true
SwitchType=switch/none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={base}/completed.log
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
ReturnToService=2
MinJobAge=600
SlurmdTimeout=20
SlurmctldTimeout=30
InactiveLimit=0
KillWait=5
MessageTimeout=60
JobRequeue=0
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=64000 Gres=gpu:{gpus} State=UNKNOWN
PartitionName=test Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class CannotStart(Exception):
    """Why there can't be a Slurm on this machine."""


@dataclass(frozen=True)
class Job:
    """One submission as the controller remembers it."""

    id: str
    state: str
    memory: str
    comment: str

    @property
    def what(self) -> str:
        """The rule and wildcards, or the group, that the executor says it is for."""
        return self.comment.removeprefix("rule_").replace("_wildcards_", " ")


def program(name: str) -> str | None:
    """Where a program is; daemons may lie outside the search path."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def obstacle() -> str | None:
    """What stands in the way of starting a Slurm here, in a line."""
    if os.geteuid() != 0:
        return "starting a Slurm takes root"
    missing = [name for name in PROGRAMS if not program(name)]
    if missing:
        return f"no {', '.join(missing)} here: make test-slurm installs Debian's packages"
    written = ETC / "slurm.conf"
    if written.exists() and not written.read_text().startswith(MARK):
        return f"{written} is another Slurm's, which the tests leave alone"
    return None


def until(condition: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    """Wait for a condition that must come true."""
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {patience:.0f} s for {what}")
        time.sleep(0.2)


def ask(*command: str) -> str:
    """What a Slurm command prints."""
    done = subprocess.run(command, text=True, capture_output=True, timeout=PATIENCE)
    return done.stdout.strip()


def descendants(pid: int) -> list[int]:
    """A process's children and theirs, from /proc."""
    listed = Path(f"/proc/{pid}/task")
    found = []
    for each in listed.glob("*/children"):
        try:
            found += [int(child) for child in each.read_text().split()]
        except OSError:
            continue
    return [one for child in found for one in (child, *descendants(child))]


def kill(pid: int, how: signal.Signals = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, how)


def named(name: str) -> Iterator[int]:
    """The running processes of a name."""
    for entry in Path("/proc").glob("[0-9]*/comm"):
        try:
            if entry.read_text().strip() == name:
                yield int(entry.parent.name)
        except OSError:
            continue


class Cluster:
    """One node with ``gpus`` fake GPUs, until :meth:`stop`."""

    def __init__(self, gpus: int = 2):
        self.gpus = gpus
        self.host = socket.gethostname().split(".")[0]
        self.hosts: str | None = None
        # two test runs on one machine take turns
        self.turn = FileLock("/tmp/stamp-test-slurm.lock")
        self.base = Path()

    def start(self) -> None:
        reason = obstacle()
        if reason:
            raise CannotStart(reason)
        self.turn.acquire()
        self.sweep()
        self.base = Path(tempfile.mkdtemp(prefix="stamp-slurm-"))
        try:
            self.configure()
            self.munge()
            self.daemon("slurmctld", "-c")
            self.node()
        except (OSError, TimeoutError, subprocess.SubprocessError) as error:
            logs = [path.read_text()[-2000:] for path in self.base.glob("*.log")]
            self.stop()
            raise CannotStart("\n".join([f"Slurm does not start: {error}", *logs])) from error

    def sweep(self) -> None:
        """End what a test run that was killed left behind."""
        written = ETC / "slurm.conf"
        if written.exists():
            self.base = Path(written.read_text().splitlines()[0].removeprefix(MARK).strip())
            self.stop_daemons()

    def configure(self) -> None:
        ETC.mkdir(parents=True, exist_ok=True)
        told = {"mark": MARK, "base": self.base, "host": self.host, "gpus": self.gpus}
        (ETC / "slurm.conf").write_text(SLURM.format(**told))
        # any character device does; the GPU's number is the one that its name ends in
        for number in range(self.gpus):
            (self.base / f"gpu{number}").symlink_to("/dev/null")
        (ETC / "gres.conf").write_text(
            f"NodeName={self.host} Name=gpu File={self.base}/gpu[0-{self.gpus - 1}]\n"
        )
        (ETC / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        try:
            socket.gethostbyname(self.host)
        except OSError:
            self.hosts = HOSTS.read_text()
            HOSTS.write_text(f"{self.hosts}\n127.0.0.1 {self.host}\n")

    def munge(self) -> None:
        key = self.base / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        files = {
            "key-file": key,
            "socket": self.base / "munge.socket",
            "pid-file": self.base / "munged.pid",
            "log-file": self.base / "munged.log",
            "seed-file": self.base / "munge.seed",
        }
        self.daemon("munged", "--force", *(f"--{name}={path}" for name, path in files.items()))

    def daemon(self, name: str, *arguments: str) -> None:
        """Start a daemon, which goes into the background by itself."""
        subprocess.run(
            [program(name) or name, *arguments],
            check=True,
            timeout=PATIENCE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(lambda: self.pid(name) is not None, f"{name} to start")

    def node(self) -> None:
        """Start the node's daemon and wait until the node takes jobs."""
        self.daemon("slurmd")
        until(lambda: ask("sinfo", "-h", "-o", "%T") in ("idle", "mixed"), "the node to be idle")

    def pid(self, name: str) -> int | None:
        """The process of a daemon by its pid file, if it is that daemon."""
        try:
            pid = int((self.base / f"{name}.pid").read_text())
            return pid if pid in named(name) else None
        except (OSError, ValueError):
            return None

    def lose_node(self) -> None:
        """The node dies as by a power cut: its daemon, the steps' daemons and all their jobs."""
        slurmd = self.pid("slurmd")
        assert slurmd is not None
        steps = list(named("slurmstepd"))
        jobs = [pid for step in steps for pid in descendants(step)]
        for pid in (slurmd, *steps, *jobs):
            kill(pid)

    def stop_daemons(self) -> None:
        for name in ("slurmd", "slurmctld", "munged"):
            pid = self.pid(name)
            if pid is None:
                continue
            kill(pid, signal.SIGTERM)
            try:
                until(lambda name=name: self.pid(name) is None, f"{name} to end", 20)
            except TimeoutError:
                kill(pid)

    def stop(self) -> None:
        ask("scancel", "--user=root", "--full")
        with contextlib.suppress(TimeoutError):
            until(lambda: not any(named("slurmstepd")), "the last job to end", 20)
        self.stop_daemons()
        for name in ("slurm.conf", "gres.conf", "cgroup.conf"):
            (ETC / name).unlink(missing_ok=True)
        if self.hosts is not None:
            HOSTS.write_text(self.hosts)
        shutil.rmtree(self.base, ignore_errors=True)
        self.turn.release()

    def jobs(self) -> list[Job]:
        """Every job since the start, in the order of submission."""
        lines = ask("squeue", "-h", "-t", "all", "-S", "i", "-o", "%i|%T|%m|%k").splitlines()
        return [Job(*line.split("|", 3)) for line in lines]

    def running(self, what: str) -> Job:
        """The job of this name, once it runs."""
        found: list[Job] = []

        def seen() -> bool:
            found[:] = [job for job in self.jobs() if (job.what, job.state) == (what, "RUNNING")]
            return bool(found)

        until(seen, f"'{what}' to run")
        return found[0]
