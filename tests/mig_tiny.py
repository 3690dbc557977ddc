"""Tiny clusters with MIG cards, by seed: other models, running instances, fixed layouts, and work of every sort."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeVar

from placement.hardware.layouts import fits
from placement.hardware.mig import Geometry, Profile, geometry
from placement.snapshot import (
    DomainLimit,
    Gpu,
    Job,
    MigInstance,
    Node,
    Policy,
    Running,
    RunningTask,
    Snapshot,
    Taint,
    Task,
    TaskGroup,
    Toleration,
)
from placement.units import Quantity

T = TypeVar("T")

MODELS = (
    "A100-40GB",
    "A30-24GB",
    "RTX-PRO-6000-BLACKWELL-96GB",
    "A100-80GB",
    "H100-SXM5-80GB",
    "RTX-PRO-5000-BLACKWELL-48GB",
)
ORDERS = (("value", "tasks"), ("tasks", "value"), ("value",), ("tasks",), ("value", "tasks", "nodes"))
PLENTY: tuple[Quantity | None, ...] = (None, 64)
SCARCE: tuple[Quantity | None, ...] = (3, 2, 4, 5)
CAPS: tuple[Quantity, ...] = ("500m", 1, "1500m", 2)


class Tiny:
    """One snapshot in the making.

    Parameters
    ----------
    seed : int
    scarce : bool
        Whether CPU of hosts may be short, and domains capped.
    mixed : bool
        Whether there are other cards and tasks that take no instance.
    max_tasks : int
        Most tasks that wait.
    """

    def __init__(self, seed: int, scarce: bool, mixed: bool, max_tasks: int) -> None:
        self.random = random.Random(f"mig {seed}")
        self.scarce, self.mixed, self.left = scarce, mixed, max_tasks
        self.migs = self.number(1, 3)
        self.models = [self.pick(MODELS) for _ in range(self.number(1, 2))]
        self.layouts: dict[tuple[int, int], tuple[MigInstance, ...]] = {}

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def pick(self, options: Sequence[T]) -> T:
        return self.random.choice(options)

    def one_in(self, n: int) -> bool:
        return self.number(1, n) == n

    def snapshot(self) -> Snapshot:
        nodes = self._nodes()
        running = self._running(nodes)
        jobs = []
        for number in range(self.number(2, 4)):
            job, wanted = self._job(f"job{number}")
            if wanted <= self.left:
                jobs.append(job)
                self.left -= wanted
        limits: list[DomainLimit] = []
        if self.scarce and self.one_in(5):
            limits.append(DomainLimit(level="cluster", cpu=self.number(2, 5)))
        if self.scarce and self.one_in(5):
            limits.append(DomainLimit(level="rack", domain=nodes[0].position["rack"], gpus=self.pick(CAPS)))
        return Snapshot(
            topology=("rack",),
            nodes=tuple(nodes),
            jobs=(*running, *jobs),
            limits=tuple(limits),
            policy=Policy(objectives=self.pick(ORDERS)),  # type: ignore[arg-type]
        )

    # --- nodes ------------------------------------------------------------------------------------------------

    def _nodes(self) -> list[Node]:
        nodes: list[Node] = []
        while self.migs:
            cards = self.number(1, self.migs)
            count = 2 if cards == 1 and self.migs >= 2 and self.one_in(3) else 1
            self.migs -= cards * count
            gpus = [self._mig_entry(cards)]
            if self.mixed and self.one_in(2):
                gpus.append(Gpu(model=self.pick(self.models), count=self.number(1, 2), memory="40Gi"))
                self.random.shuffle(gpus)
            nodes.append(
                Node(
                    name=f"n{len(nodes)}",
                    count=count,
                    position={"rack": self.pick(("r0", "r1"))},
                    labels={"zone": self.pick(("a", "b"))},
                    taints=(Taint(key="dedicated", value="x"),) if self.one_in(12) else (),
                    cordoned=self.one_in(25),
                    cpu=self.pick(SCARCE if self.scarce else PLENTY),
                    memory=self.pick((None, "8Gi", "4Gi")) if self.scarce else None,
                    pods=self.pick((None, None, 3)) if self.scarce else None,
                    gpus=tuple(gpus),
                )
            )
        if self.mixed and len(nodes) < 3 and self.one_in(2):
            nodes.append(Node(name="other", cpu=self.pick(SCARCE), gpus=(Gpu(model="A100-40GB", memory="40Gi"),)))
        return nodes

    def _mig_entry(self, count: int) -> Gpu:
        model = self.pick(self.models)
        gpu = Gpu(model=model, count=count, mig_enabled=True, health="unhealthy" if self.one_in(20) else "healthy")
        if not self.one_in(3):
            return gpu
        there = _known(model)
        layout = [MigInstance(profile=one.name, start=start) for one, start in self._some(there, self.number(1, 5))]
        return Gpu(model=model, count=count, mig_enabled=True, mig_layout=tuple(layout), mig_static=self.one_in(2))

    def _some(self, there: Geometry, most: int) -> list[tuple[Profile, int]]:
        """Return instances that can exist together on a card."""
        found: list[tuple[Profile, int]] = []
        for _ in range(most):
            profile = self.pick(there.profiles)
            one = profile, self.pick(profile.starts)
            if fits(there, found, one):
                found.append(one)
        return found

    # --- jobs -------------------------------------------------------------------------------------------------

    def _running(self, nodes: list[Node]) -> list[Job]:
        jobs: list[Job] = []
        for node in nodes:
            index = 0
            for gpu in node.gpus:
                for device in range(index, index + gpu.count):
                    for name in [node.name] if node.count == 1 else [f"{node.name}-0"]:
                        jobs += self._on_card(name, gpu, device, len(jobs))
                index += gpu.count
        return jobs

    def _on_card(self, node: str, gpu: Gpu, device: int, number: int) -> list[Job]:
        places: list[tuple[Task, tuple[int, ...]]] = []
        if gpu.mig_enabled and self.one_in(2):
            there = _known(gpu.model)
            layout = [(there.profile(one.profile), one.start) for one in gpu.mig_layout]
            some = self.random.sample(layout, min(len(layout), 2)) if layout else self._some(there, 2)
            if gpu.mig_static and not layout:
                some = []
            places = [(Task(gpus=1, mig_profile=one.name, cpu=self.pick((0, 1))), (s,)) for one, s in some if one]
        elif not gpu.mig_enabled and self.one_in(3):
            places = [(Task(gpus=1, gpu_share=self.pick((None, 0.5)), cpu=self.pick((0, 1))), ())]
        return [
            Job(
                name=f"old{number + i}",
                groups=(TaskGroup(name="g", task=task),),
                running=Running(tasks=(RunningTask(group="g", index=0, node=node, gpus=(device,), mig_starts=starts),)),
            )
            for i, (task, starts) in enumerate(places)
        ]

    def _job(self, name: str) -> tuple[Job, int]:
        groups = [self._group("g")]
        if self.one_in(5):
            groups.append(self._group("h"))
        copies = self.pick((1, 1, 2, 3)) if len(groups) == 1 else 1
        more: dict[str, Any] = {"value": self.number(1, 20)} if self.one_in(6) else {"weight": self.pick((1, 1, 2, 3))}
        job = Job(name=name, count=copies, priority=self.pick((0, 0, 1)), groups=tuple(groups), **more)
        return job, copies * sum(group.count for group in groups)

    def _group(self, name: str) -> TaskGroup:
        count = self.pick((1, 1, 1, 2, 3))
        least = self.number(1, count) if self.one_in(2) else None
        return TaskGroup(name=name, count=count, min_count=least, task=self._task())

    def _task(self) -> Task:
        cpu = self.pick((0, 1, 1, 2)) if self.scarce else self.pick((0, 1))
        tolerations = (Toleration(key="dedicated", operator="Exists"),) if self.one_in(3) else ()
        common: dict[str, Any] = {
            "cpu": cpu,
            "memory": self.pick((0, "1Gi", "2Gi")) if self.scarce else 0,
            "node_selector": {"zone": self.pick(("a", "b"))} if self.one_in(10) else {},
            "tolerations": tolerations,
        }
        if self.mixed and self.one_in(3):
            gpus = self.pick((1, 1, 2, 0))
            share = self.pick((None, None, 0.5)) if gpus == 1 else None
            return Task(gpus=gpus, gpu_share=share, **common)
        profile = self.pick(_known(self.pick(self.models)).profiles)
        return Task(
            gpus=1,
            mig_profile=self.pick((profile.name, profile.name, f"nvidia.com/mig-{profile.name.replace('+', '.')}")),
            gpu_memory=self.pick(("4Gi", "12Gi")) if self.one_in(8) else None,
            gpu_models=(self.pick(self.models),) if self.one_in(8) else (),
            **common,
        )


def _known(model: str) -> Geometry:
    found = geometry(model)
    assert found is not None
    return found


def random_mig(seed: int, *, scarce: bool, mixed: bool, max_tasks: int = 7) -> Snapshot:
    """Return the snapshot of a seed; see `Tiny`."""
    return Tiny(seed, scarce, mixed, max_tasks).snapshot()
