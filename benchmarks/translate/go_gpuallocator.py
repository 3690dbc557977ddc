"""Cases of go-gpuallocator: which cards of one node a request for some whole cards gets, of those that are free.

Each request is a job, in the order of the requests; cards that are not free are in use by a running job. The machines
are in a file beside the cases.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from placement.snapshot import Gpu, Job, Link, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from translate.common import Answer, Case, InexpressibleError, source_of

RULE = "go-gpuallocator"
NODE = "node"


def cases(folder: Path) -> Iterator[Case]:
    """Yield the cases of a folder, each with the paths of its machine."""
    machines = json.loads((folder / "node_topologies.json").read_text("utf-8"))
    for text in (folder / "alloc_cases.jsonl").read_text("utf-8").splitlines():
        case = json.loads(text)
        yield {**case, "links": machines[case["node"]]["links"]}


def translate(case: Case) -> Answer:
    """Return a case as a snapshot.

    Raises
    ------
    InexpressibleError
        If it is of another policy, or requires a card by number.
    """
    if case["policy"] != "best-effort":
        raise InexpressibleError("rule", f"the policy is {case['policy']}, not best effort")
    if case.get("must_include"):
        raise InexpressibleError("jobs.groups.task", "a card, by number, that must be among those that a task gets")
    requests = case.get("requests", [{"size": case.get("size"), "expected": case.get("expected")}])
    cells = case["links"]
    busy = [card for card in range(len(cells)) if card not in case.get("available", range(len(cells)))]
    jobs = [Job(name=f"r{i}", groups=(TaskGroup(name="g", task=Task(gpus=r["size"])),)) for i, r in enumerate(requests)]
    if busy:
        group = TaskGroup(name="g", task=Task(gpus=len(busy)))
        place = RunningTask(group="g", index=0, node=NODE, gpus=tuple(busy))
        jobs.append(Job(name="busy", groups=(group,), running=Running(tasks=(place,))))
    node = Node(name=NODE, gpus=(Gpu(model="gpu", count=len(cells)),), links=tuple(_links(cells)))
    both = any("+" in cell and cell.startswith("NV") for row in cells for cell in row)
    return Answer(
        Snapshot(source=source_of(case), licence=case["source"]["licence"], nodes=(node,), jobs=tuple(jobs)),
        RULE,
        {f"r{i}": [(NODE, sorted(r["expected"]))] for i, r in enumerate(requests) if r["expected"] != "refused"},
        "the source adds up the NVLink and the PCIe path of a pair, a snapshot has one of them" if both else "",
    )


def _links(cells: list[list[str]]) -> Iterator[Link]:
    """Yield the best path of each pair."""
    for a, b in combinations(range(len(cells)), 2):
        kind = cells[a][b].split("+")[0]
        if kind.startswith("NV"):
            yield Link(a=a, b=b, kind="NVLINK", width=int(kind[2:]))
        else:
            yield Link(a=a, b=b, kind=kind)  # type: ignore[arg-type]
