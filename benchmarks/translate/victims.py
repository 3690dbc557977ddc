"""Cases in which running work makes room: KAI-Scheduler's preempt, reclaim and consolidation, Volcano's preempt.

What is compared is which jobs start, and how many running pods leave their places for it. In the source an action
decides whom it looks at, which here is said by the jobs: preempting stops preemptible jobs of a lower priority in the
same queue; reclaiming stops those of other queues; consolidation moves and stops nobody, which a common priority says.
Quotas are cards of any model. What a queue gets beyond its quota is shared by weight there and by nobody's right here.

A gang's pods are groups with their minima, so that those it can do without may leave alone. Volcano's cases say of each
pod by itself whether it may be stopped, so each running pod is a job.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from placement.snapshot import Job, Queue, Running, RunningTask, Snapshot, TaskGroup
from translate import kai, volcano
from translate.common import Case, InexpressibleError, UntranslatedError, amounts, node_of, source_of

ACTIONS = ("preempt", "reclaim", "consolidation")
GOES_ON = ("Pipelined", "Binding", "Running")
"""States of a pod that has, or will have, a place."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A case in the project's format, and what its source expects.

    Attributes
    ----------
    snapshot : Snapshot
    move : bool
        Whether running work may go on elsewhere.
    started : dict of str to int, optional
        Pods that start of each job that does; None where the source does not say.
    evictions, most : int
        Running pods that leave their places, and how many may at most.
    shared : bool
        Whether the source lets a job start with which its queue has more than its quota.
    """

    snapshot: Snapshot
    move: bool
    started: Mapping[str, int] | None
    evictions: int
    most: int
    shared: bool = False


def translate(kind: str, case: Case) -> Asked:
    """Return a case as a snapshot and what is expected.

    Raises
    ------
    InexpressibleError
        If a snapshot cannot say it.
    UntranslatedError
        If it is about something that is left out here.
    """
    return _kai(case) if kind == "kai" else _volcano(case)


# --- KAI-Scheduler -----------------------------------------------------------------------------------------------


def _kai(case: Case) -> Asked:
    _judge(case)
    where = kai.Cards(case)
    levels = kai.levels_of(case)
    waiting = [job for job in case["jobs"] if job["pods"][0]["state"] == "Pending"]
    asking = {job["queue"] for job in waiting}
    if len(asking) > 1 and case["action"] != "consolidation":
        raise InexpressibleError(
            "queues", "jobs of several queues wait, and shares of queues say which is served first"
        )
    jobs = []
    for job in case["jobs"]:
        made = _waits(case, job) if job in waiting else _runs(case, job, where)
        priority = job["priority"] if case["action"] != "consolidation" else 0
        may_leave = job["priority"] < kai.ALWAYS and _acts_on(case, job["queue"] in asking)
        more = {"preemptible": may_leave} if job not in waiting else {}
        jobs.append(msgspec.structs.replace(made, queue=job["queue"], priority=priority, **more))
    jobs = _in_order(case, jobs)
    started: dict[str, int] = defaultdict(int)
    for job in waiting:
        for number in range(len(job["pods"])):
            if kai.expected(case, job, number)["state"] in GOES_ON:
                started[job["name"]] += 1
    becomes = Counter(
        kai.expected(case, job, number)["state"]
        for job in case["jobs"]
        for number, pod in enumerate(job["pods"])
        if pod["state"] == "Running"
    )
    moved = becomes["Pipelined"] > 0
    return Asked(
        Snapshot(
            description=case.get("note", ""),
            source=source_of(case),
            licence=case["source"]["licence"],
            topology=levels,
            nodes=tuple(kai.node_of(node, levels) for node in case["nodes"]),
            jobs=tuple(jobs),
            queues=tuple(_queues(case)),
        ),
        move=moved or case["action"] == "consolidation",
        started=dict(started),
        evictions=becomes.total() - becomes["Running"],
        most=case["expected"].get("max_actions", {}).get("evictions", 0),
        shared=case["action"] == "reclaim" and kai.beyond_quota(case, asking, started),
    )


def _judge(case: Case) -> None:
    states = {pod["state"] for job in case["jobs"] for pod in job["pods"]}
    if leaving := sorted(states - {"Pending", "Running"}):
        raise InexpressibleError("jobs.running", f"work that is {' or '.join(leaving)}: it holds its card for now")
    for job in case["jobs"]:
        if any("priority" in pod for pod in job["pods"]):
            raise InexpressibleError("jobs.priority", "pods of several priorities in one job")
        kai.judge_job(job)
    for queue in (*case["queues"], *case.get("parent_queues", ())):
        if any("cpu" in field or "memory" in field for field in queue):
            raise InexpressibleError("queues", "a quota of CPU or memory")
        if "priority" in queue:
            raise InexpressibleError("queues", "queues have priorities")
    if all(job["pods"][0]["state"] != "Pending" for job in case["jobs"]):
        raise InexpressibleError("jobs", "nothing waits")
    asking = {job["queue"] for job in case["jobs"] if job["pods"][0]["state"] == "Pending"}
    asking |= {queue["parent"] for queue in case["queues"] if queue["name"] in asking and "parent" in queue}
    for queue in (*case["queues"], *case.get("parent_queues", ())):
        if queue["name"] in asking:
            kai.judge_always(case, queue)


def _acts_on(case: Case, same_queue: bool) -> bool:
    """Return whether the action of a case looks at running jobs of the queues of those that wait, or of the others."""
    if case["action"] == "consolidation":
        return True
    return same_queue if case["action"] == "preempt" else not same_queue


def _queues(case: Case) -> Iterator[Queue]:
    """Yield the queues where quotas decide something: where work of other queues is reclaimed."""
    if case["action"] != "reclaim":
        return
    cards = sum(node["gpus"] for node in case["nodes"])
    names = {queue["name"] for queue in case.get("parent_queues", ())}
    yield Queue(name="all queues", quota={"*": cards})
    for queue in (*case.get("parent_queues", ()), *case["queues"]):
        quota = queue.get("guaranteed_gpus", 0)
        parent = queue["parent"] if queue.get("parent") in names else "all queues"
        limit = queue.get("limit_gpus", -1)
        yield Queue(
            name=queue["name"],
            parent=parent,
            quota={"*": cards if quota < 0 else quota},
            borrowing_limit={} if limit < 0 else {"*": max(0, limit - max(0, quota))},
            weight=float(queue.get("over_quota_weight", 1)),
        )


def _in_order(case: Case, jobs: list[Job]) -> list[Job]:
    """Return jobs so that those of one priority are served as in the source, which is by priority there."""
    if case["action"] != "consolidation":
        return jobs
    ranks = {job["name"]: -job["priority"] for job in case["jobs"]}
    return sorted(jobs, key=lambda job: ranks[job.name])


def _waits(case: Case, job: Case) -> Job:
    return Job(name=job["name"], groups=kai.gang_of(case, job))


def _runs(case: Case, job: Case, where: kai.Cards) -> Job:
    """Return a running job, whose groups say how many of their pods it needs."""
    groups = tuple(kai.groups_of(case, job))
    of_podset: dict[str, int] = defaultdict(int)
    placed = []
    for number, pod in enumerate(job["pods"]):
        name = f"pod-{number}"
        group = next((one for one in groups if one.name == name), None)
        if group is None:
            podsets = job["gang"]["podsets"]
            name = pod.get("podset", podsets[0]["name"])
            group = next(one for one in groups if one.name == name)
        copy = of_podset[name]
        of_podset[name] += 1
        for part in group.groups or (group,):
            assert part.task is not None
            path = group.name if part is group else f"{group.name}/{part.name}"
            count = 1 if part is group else part.count
            for index in range(count):
                gpus, starts = where.of(pod, part.task)
                placed.append(
                    RunningTask(group=path, index=copy * count + index, node=pod["node"], gpus=gpus, mig_starts=starts)
                )
    return Job(name=job["name"], groups=groups, running=Running(tasks=tuple(placed)))


# --- Volcano -----------------------------------------------------------------------------------------------------


def _volcano(case: Case) -> Asked:
    groups = {group["name"]: group for group in case["groups"]}
    for queue in case["queues"]:
        if "capability" in queue and not _enough(case, queue):
            raise InexpressibleError("queues", "a limit of CPU and memory of a queue")
    if case["action"] == "reclaim":
        raise InexpressibleError("queues", "shares of CPU by weight or priority of queues decide")
    for group in case["groups"]:
        if group.get("preemption_policy") or any(pod.get("preemption_policy") for pod in case["pods"]):
            raise InexpressibleError("jobs.preemptible", "a job that waits and stops nobody")
        mine = [pod["phase"] for pod in case["pods"] if pod["group"] == group["name"]]
        if len(set(mine)) > 1:
            raise UntranslatedError("jobs.running", "a job of which a part runs")
    jobs = []
    for pod in case["pods"]:
        if pod["phase"] == "Running":
            task = volcano.task_of(pod)
            place = RunningTask(group="main", index=0, node=pod["node"])
            jobs.append(
                Job(
                    name=pod["name"],
                    priority=_priority(groups[pod["group"]]),
                    preemptible=pod.get("labels", {}).get("schedulingv1beta1.PodPreemptable") == "true",
                    groups=(TaskGroup(name="main", task=task),),
                    running=Running(tasks=(place,)),
                )
            )
    for name, group in groups.items():
        pods = [pod for pod in case["pods"] if pod["group"] == name and pod["phase"] == "Pending"]
        if pods:
            if any(amounts(pod["requests"]) != amounts(pods[0]["requests"]) for pod in pods):
                raise UntranslatedError("jobs.groups", "unlike pods of a group")
            main = TaskGroup(
                name="main", count=len(pods), min_count=max(1, group["min_member"]), task=volcano.task_of(pods[0])
            )
            jobs.append(Job(name=name, priority=_priority(group), groups=(main,)))
    snapshot = Snapshot(
        source=source_of(case),
        licence=case["source"]["licence"],
        nodes=tuple(node_of(node, {}) for node in case["nodes"]),
        jobs=tuple(jobs),
    )
    return Asked(snapshot, False, None, case["expected"]["evictions"], case["expected"]["evictions"])


def _priority(group: Case) -> int:
    return {"low-priority": 1, "mid-priority": 2, "high-priority": 3}.get(group.get("priority_class", ""), 0)


def _enough(case: Case, queue: Case) -> bool:
    """Return whether a queue may have all that is asked for in it."""
    names = {group["name"] for group in case["groups"] if group["queue"] == queue["name"]}
    asked = sum(float(pod["requests"].get("cpu", 0)) for pod in case["pods"] if pod["group"] in names)
    return asked <= float(queue["capability"]["cpu"])
