"""Plans as commands of Slurm.

``slurm`` is a shell script that gives pending jobs the nodes of the plan; ``slurm-sbatch`` is the options with which
new jobs would be submitted to them. Slurm chooses the cards of a node itself, by its own rules, so that the cards of
the plan stand in comments. Priorities are left as they are.

Every word is quoted for the shell. Names of nodes that a list of Slurm would take for something else are refused.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from placement.errors import InputError
from placement.formats.slurm.hostlist import NOBODY, compress
from placement.formats.slurm.nodes import UNTYPED
from placement.formats.tasks import PlacedTask, placed
from placement.plan import Plan
from placement.snapshot import Snapshot
from placement.snapshot.report import show

_ID = re.compile(r"[0-9]{1,10}(?:[_+][0-9]{1,10})?", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_NO_NODE = re.compile(r"[\s,\[\]/*]")
"""What no name may have: `sbatch` takes a list with a slash for the name of a file, and ``n*2`` for n twice."""

_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*", re.ASCII)


@dataclass(slots=True)
class _Job:
    """A job that the plan starts: its tasks by node, in the order of the plan."""

    name: str
    nodes: dict[str, list[PlacedTask]] = field(default_factory=dict)

    @property
    def cards(self) -> str:
        """The cards by node, for people."""
        shown = []
        for node, tasks in self.nodes.items():
            cards = sorted({card for task in tasks for card in task.place.gpus})
            shown.append(f"{node}: {','.join(map(str, cards)) or 'none'}")
        return "; ".join(shown)


def write(snapshot: Snapshot, plan: Plan) -> bytes:
    """Return a POSIX shell script that gives the jobs of a plan their nodes.

    Each command stands alone: where one fails, for its job has ended meanwhile, the others run, and the script ends
    with status 1.

    Raises
    ------
    InputError
        If a job is not one of Slurm, or the name of a node cannot stand in a list of Slurm.
    """
    out = [
        "#!/bin/sh",
        "# Nodes for pending jobs. Slurm chooses the cards; comments say those of the plan.",
        "status=0",
    ]
    for job in _jobs(snapshot, plan):
        if _ID.fullmatch(job.name) is None:
            raise InputError.one(
                f"the job {show(job.name)} has no number of Slurm",
                "write the plan as slurm-sbatch, or import the jobs from Slurm",
            )
        words = ["scontrol", "update", f"JobId={job.name}", f"ReqNodeList={_list(job.nodes)}"]
        out.append(f"{shlex.join([*words, f'NumNodes={len(job.nodes)}'])} || status=1")
        out.append(f"# GPUs by node: {job.cards}")
    return "\n".join([*out, 'exit "$status"', ""]).encode()


def write_sbatch(snapshot: Snapshot, plan: Plan) -> bytes:
    """Return a line of sbatch options for each job of a plan, after a comment with its name and cards.

    Raises
    ------
    InputError
        If a task takes a share of a card or a MIG instance, or the name of a node cannot stand in a list of Slurm.
    """
    out = []
    for job in _jobs(snapshot, plan):
        out.append(f"# {show(job.name, len(job.name))}, GPUs by node: {job.cards}")
        out.append(shlex.join([f"--nodelist={_list(job.nodes)}", f"--nodes={len(job.nodes)}", *_devices(job)]))
    return "".join(f"{line}\n" for line in out).encode()


def _jobs(snapshot: Snapshot, plan: Plan) -> Iterator[_Job]:
    jobs: dict[str, _Job] = {}
    for task in placed(snapshot, plan):
        node = task.place.node
        if not node.isprintable() or _NO_NODE.search(node) or node.lower() in NOBODY:
            raise InputError.one(f"the node's name {show(node)} cannot stand in a list of Slurm", "rename the node")
        jobs.setdefault(task.job_name, _Job(task.job_name)).nodes.setdefault(node, []).append(task)
    yield from jobs.values()


def _list(nodes: Iterable[str]) -> str:
    """Return nodes as a list of Slurm, in ranges those with plain names."""
    names = sorted(nodes, key=_counted)
    plain = [name for name in names if _PLAIN.fullmatch(name)]
    others = [name for name in names if not _PLAIN.fullmatch(name)]
    return ",".join([compress(plain)] * bool(plain) + others)


def _counted(name: str) -> tuple[str, int, int]:
    """Return what brings names into an order in which numbers at their ends count on."""
    digits = re.search(r"[0-9]{1,18}\Z", name)
    return (name, 0, 0) if digits is None else (name[: digits.start()], len(digits[0]), int(digits[0]))


def _devices(job: _Job) -> list[str]:
    """Return the options for cards: ``--gres`` by node, or ``--gpus`` in all where nodes differ."""
    by_node = [_types(tasks) for tasks in job.nodes.values()]
    total: Counter[str] = Counter()
    for types in by_node:
        total.update(types)
    if not total:
        return []
    alike = all(types == by_node[0] for types in by_node)
    wanted = by_node[0] if alike else total
    parts = [f"{kind}:{count}" if kind else str(count) for kind, count in sorted(wanted.items())]
    return ["--gres=" + ",".join(f"gpu:{part}" for part in parts)] if alike else ["--gpus=" + ",".join(parts)]


def _types(tasks: list[PlacedTask]) -> Counter[str]:
    """Return the number of cards by type, which is the model; no type where the model's name cannot be one."""
    found: Counter[str] = Counter()
    for task in tasks:
        if task.task.gpu_share is not None or task.task.mig_profile:
            raise InputError.one(
                f"the job {show(task.job_name)} takes a share of a card or a MIG instance, which --gres does not say "
                "in one way for every cluster",
                "write its options by hand",
            )
        models = [gpu.model for gpu in task.node.gpus for _ in range(gpu.count)]
        for card in task.place.gpus:
            model = models[card]
            found["" if model == UNTYPED or _TYPE.fullmatch(model) is None else model] += 1
    return found
