"""HiveD's own sequence of pods: for each gang, which cards it gets with all that came before it in place.

Of the cluster it is what a snapshot says: nodes, their cards, and the racks and pairs of nodes that larger cells are.
What a virtual cluster owns, and work that others may stop, is nothing that a plan is made from.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from translate.common import Answer, Case, InexpressibleError, source_of

RULE = "hived-buddy"
CELLS: dict[str, tuple[int, dict[str, tuple[str, ...]]]] = {
    "CT1": (2, {"0.0.0.0": (), "0.0.0.1": ()}),
    "DGX1-P100": (8, {"1.0.0.2": ("p0",), "1.0.0.1": ("p0",), "1.0.0.0": ("p0",)}),
    "DGX2-V100": (
        16,
        {
            "0.0.1.0": (),
            "0.0.5.0": (),
            **{f"0.0.2.{node}": ("v0",) for node in range(3)},
            **{f"0.0.3.{node}": ("v1", f"v1-{node // 2}") for node in range(4)},
            **{f"0.0.4.{node}": ("v2", f"v2-{node // 2}") for node in range(4)},
        },
    ),
}
"""Cards of a node, and the rack and the pair of each node, of the kinds of cards that the sequence asks for."""
LEVELS = ("rack", "pair")
OWNED = "the source takes a cell that its virtual cluster owns, here nobody owns one"


def cases(folder: Path) -> Iterator[Case]:
    """Yield each gang of the sequence, with the pods that were placed before it."""
    sequence = json.loads((folder / "sequence.json").read_text("utf-8"))
    before: list[Case] = []
    for name in dict.fromkeys(pod["gang"] for pod in sequence["sequence"]):
        pods = [pod for pod in sequence["sequence"] if pod["gang"] == name]
        yield {"case_id": f"hived-{name}", "source": sequence["source"], "pods": pods, "before": [*before]}
        before += [pod for pod in pods if "node" in pod["expected"]]


def translate(case: Case) -> Answer:
    """Return a gang as a snapshot in which all before it runs.

    Raises
    ------
    InexpressibleError
        If a virtual cluster decides, or it is about stopping work.
    """
    pods, expected = case["pods"], case["pods"][0]["expected"]
    if any(pod["pinned_cell"] for pod in pods):
        raise InexpressibleError("jobs.queue", "a cell that is pinned to a virtual cluster")
    if pods[0]["priority"] < 0:
        raise InexpressibleError("jobs.priority", "work that others may stop is kept away from them")
    if expected == "waits":
        raise InexpressibleError("jobs.queue", "a virtual cluster has too few cells")
    if "preempts" in expected:
        raise InexpressibleError("jobs.preemptible", "whom a gang stops")
    groups = tuple(
        TaskGroup(name=pod["pod"], task=Task(gpus=pod["gpus"], gpu_models=_models(pod["gpu_type"]))) for pod in pods
    )
    answer = [(pod["expected"]["node"], sorted(pod["expected"]["gpus"])) for pod in pods]
    jobs = (*(_running(pod) for pod in case["before"]), Job(name="gang", groups=groups))
    snapshot = Snapshot(
        source=source_of(case), licence=case["source"]["licence"], topology=LEVELS, nodes=tuple(_nodes()), jobs=jobs
    )
    owned = len(pods) > 1 or pods[0]["gpu_type"] != "DGX2-V100"
    return Answer(snapshot, RULE, {"gang": answer}, OWNED if owned else "")


def _models(kind: str) -> tuple[str, ...]:
    return () if kind == "any" else (kind,)


def _nodes() -> Iterator[Node]:
    for model, (count, nodes) in CELLS.items():
        for name, cells in nodes.items():
            position = dict(zip(LEVELS, cells, strict=False))
            yield Node(name=name, position=position, gpus=(Gpu(model=model, count=count),))


def _running(pod: Case) -> Job:
    """Return a pod that was placed."""
    place = RunningTask(group="g", index=0, node=pod["expected"]["node"], gpus=tuple(sorted(pod["expected"]["gpus"])))
    group = TaskGroup(name="g", task=Task(gpus=pod["gpus"]))
    return Job(name=pod["pod"], groups=(group,), running=Running(tasks=(place,)))
