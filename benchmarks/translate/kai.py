"""Cases of KAI-Scheduler: shares of cards, MIG instances and gangs on nodes where some work runs already.

What is compared is which jobs start, and with how many tasks, without any work being stopped or moved. Memory of a card
that is asked for is a share of it, as it is in the source. MIG instances are resources of a node by name there, and
neither cards nor slots are known: here each instance is the only one of a card, and stays as it is. A pod of several
instances is as many tasks that lie on one node.

Which card a share gets is not compared, for it depends on whether the source packs or spreads, which is no part of a
case. Quotas decide nothing here: a case in which one could is none that a snapshot says.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from placement.hardware import mig
from placement.snapshot import Gpu, Job, MigInstance, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from translate.common import HOST, Case, InexpressibleError, Translated, UntranslatedError, source_of, topology_of

MODEL = "gpu"
CARD_MIB = 100
"""Memory of a card where a case says nothing of it."""
ALWAYS = 100
"""Jobs of this priority and above are never stopped, and so never get more than their queue's quota."""
STARTED = ("Binding", "Running")


def translate(case: Case) -> Translated:
    """Return a case as a snapshot.

    Raises
    ------
    InexpressibleError
        If the source stops or moves running work, waits for some to leave, or is bound by a quota.
    UntranslatedError
        If it is about something that this translation leaves out.
    """
    _judge(case)
    where = Cards(case)
    levels = levels_of(case)
    snapshot = Snapshot(
        description=case.get("note", ""),
        source=source_of(case),
        licence=case["source"]["licence"],
        topology=levels,
        nodes=tuple(node_of(node, levels) for node in case["nodes"]),
        jobs=tuple(_job(case, job, where) for job in case["jobs"]),
    )
    wanted = 0
    started: Counter[str] = Counter()
    nodes: set[str] = set()
    for job in case["jobs"]:
        for number, pod in enumerate(job["pods"]):
            if pod["state"] == "Pending":
                tasks = sum(_instances(pod).values()) or 1
                wanted += tasks
                if _starts(case, job, number):
                    started[job["name"]] += tasks
                    nodes |= {expected(case, job, number).get("node", "")} - {""}
    used = {"node": len(nodes)} if nodes else {}
    return Translated(snapshot, wanted, started.total(), jobs=dict(started), domains=used)


# --- what is no question of placing ------------------------------------------------------------------------------


def _judge(case: Case) -> None:
    """Refuse a case of which the answer is not one of a plan that leaves running work alone."""
    stopped = case["expected"].get("max_actions", {}).get("evictions", 0)
    if stopped:
        why = f"the answer of the action {case['action']} stops or moves running work, which a plan does not"
        raise InexpressibleError("jobs.preemptible", why)
    states = {pod["state"] for job in case["jobs"] for pod in job["pods"]}
    if leaving := sorted(states - {"Pending", "Running"}):
        why = f"work that is {' or '.join(leaving)}: it holds its card now and will not later"
        raise InexpressibleError("jobs.running", why)
    for job in case["jobs"]:
        judge_job(job)
    for node in case["nodes"]:
        if "gpu_product" in node:
            raise UntranslatedError("nodes.gpus.model", "labels of card models")
    for queue in (*case["queues"], *case.get("parent_queues", ())):
        if any("cpu" in field or "memory" in field for field in queue):
            raise InexpressibleError("queues", "a quota of CPU or memory")
    waiting = [job for job in case["jobs"] if job["pods"][0]["state"] == "Pending"]
    if not waiting:
        raise InexpressibleError("jobs", "nothing waits")
    if all(_starts(case, job, number) for job in waiting for number in range(len(job["pods"]))):
        return  # whatever queues may have, it is enough
    for queue in (*case["queues"], *case.get("parent_queues", ())):
        _judge_queue(case, queue)
    if len({job["queue"] for job in waiting}) > 1:
        raise InexpressibleError("queues", "not all have room, and which queue is served first decides")


def judge_job(job: Case) -> None:
    """Refuse a job that is not translated."""
    if len({pod["state"] for pod in job["pods"]}) > 1:
        raise UntranslatedError("jobs.running", "a job of which a part runs")
    if any(field.startswith(("pod_affinity", "pod_anti", "only_nodes")) for pod in job["pods"] for field in pod):
        raise UntranslatedError("jobs.groups.task", "affinity of pods, or nodes by name")
    if any(pod.get("legacy_mig_uses_whole_node_mig") for pod in job["pods"]):
        raise InexpressibleError("jobs.groups.task.mig_profile", "all instances of a node, whatever they are")
    gang = job["gang"]
    if "groups" in gang or any("topology" in podset for podset in gang.get("podsets", ())):
        raise UntranslatedError("jobs.groups.groups", "groups within groups")
    if gang.get("all_or_nothing", len(job["pods"])) != len(job["pods"]):
        raise UntranslatedError("jobs.groups.min_count", "a gang that is not all of its pods")


def _judge_queue(case: Case, queue: Case) -> None:
    """Refuse a case in which a queue's quota or limit could keep a job waiting that has room on the cards."""
    judge_always(case, queue)
    jobs = _below(case, queue)
    everything = sum((_most(case, job) for job in jobs), Fraction(0))
    _judge_most(case, queue, "limit", queue.get("limit_gpus"), everything)


def judge_always(case: Case, queue: Case) -> None:
    """Refuse a case in which a queue's quota could keep a job waiting that would never be stopped again."""
    always = sum((_most(case, job) for job in _below(case, queue) if job["priority"] >= ALWAYS), Fraction(0))
    _judge_most(case, queue, "quota", queue.get("guaranteed_gpus"), always)


def beyond_quota(case: Case, names: Collection[str], started: Collection[str]) -> bool:
    """Return whether some of the queues named, or those above, have more than their quotas once jobs have started."""
    above = {queue["parent"] for queue in case["queues"] if queue["name"] in names and "parent" in queue}
    for queue in (*case["queues"], *case.get("parent_queues", ())):
        jobs = [job for job in _below(case, queue) if job["name"] in started or job["pods"][0]["state"] == "Running"]
        used = sum((_most(case, job) for job in jobs), Fraction(0))
        if queue["name"] in {*names, *above} and 0 <= queue.get("guaranteed_gpus", 0) < used:
            return bool(started)
    return False


def _below(case: Case, queue: Case) -> list[Case]:
    names = {queue["name"], *(one["name"] for one in case["queues"] if one.get("parent") == queue["name"])}
    return [job for job in case["jobs"] if job["queue"] in names]


def _judge_most(case: Case, queue: Case, what: str, most: float | None, asked: Fraction) -> None:
    cards = sum(node["gpus"] + sum(_profiles(node).values()) for node in case["nodes"])
    # where it is as much as all cards, it is they that bind; below 0 there is none
    if most is not None and most >= 0 and asked > Fraction(str(most)) < cards:
        why = f"{queue['name']} has a {what} of {most} cards, and {float(asked):g} are asked for"
        raise InexpressibleError("queues", why)


def _most(case: Case, job: Case) -> Fraction:
    """Return the most cards that a job counts as, on whichever node; each MIG instance as one."""
    smallest = min(node.get("gpu_memory_mib", CARD_MIB) for node in case["nodes"])
    each = Fraction(str(job.get("gpus_per_pod", 0))) + Fraction(job.get("gpu_memory_per_pod_mib", 0), smallest)
    return sum((each + pod.get("gpus", 0) + sum(_instances(pod).values()) for pod in job["pods"]), Fraction(0))


def expected(case: Case, job: Case, number: int) -> Case:
    """Return what becomes of a pod."""
    said = case["expected"]
    of_pod = said.get("pods", {}).get(f"{job['name']}-{number}")
    # a job of one pod is at times named as if it were the pod
    found: Case | None = of_pod or said.get("jobs", {}).get(job["name"]) or said.get("pods", {}).get(job["name"])
    if found is None:
        raise UntranslatedError("expected", f"nothing is said of {job['name']}")
    return found


def _starts(case: Case, job: Case, number: int) -> bool:
    return expected(case, job, number)["state"] in STARTED


# --- nodes and cards ---------------------------------------------------------------------------------------------


def levels_of(case: Case) -> tuple[str, ...]:
    """Return the levels of the one tree of nodes."""
    found = [level for topology in case.get("topologies", ()) for level in topology["levels"]]
    if len(case.get("topologies", ())) > 1:
        raise UntranslatedError("topology", "several trees of nodes")
    return tuple(found)


def node_of(node: Case, levels: Sequence[str]) -> Node:
    """Return a node with its cards, or those that its MIG instances stand for."""
    labels = {HOST: node["name"], **node.get("labels", {})}
    there = [level for level in levels if level in labels]
    memory = node.get("gpu_memory_mib", CARD_MIB)
    whole = Gpu(model=MODEL, count=node["gpus"], memory=f"{memory}Mi") if node["gpus"] else None
    return Node(
        name=node["name"],
        # a domain is the source's only together with those around it: names are used again
        position={level: "/".join(labels[one] for one in there[: i + 1]) for i, level in enumerate(there)},
        cpu=f"{node['cpu_milli']}m",
        memory=node["memory_bytes"],
        pods=110,
        gpus=(*filter(None, (whole,)), *_sliced(node)),
    )


def _profiles(node: Case) -> dict[str, int]:
    """Return how many instances of each profile a node has."""
    return {mig.plain_profile(name): count for name, count in node.get("mig_instances", {}).items() if count}


def _sliced(node: Case) -> Iterator[Gpu]:
    """Yield a card for each instance, of the first model that has all of the node's profiles."""
    profiles = _profiles(node)
    for there in mig.geometries():
        found = {one.name: one for one in there.profiles if one.name in profiles}
        if len(found) == len(profiles):
            break
    else:
        raise InexpressibleError("nodes.gpus.model", f"no card has {' and '.join(profiles)}")
    for name, count in profiles.items():
        only = MigInstance(profile=name, start=found[name].starts[0])
        yield Gpu(model=there.model, count=count, mig_enabled=True, mig_static=True, mig_layout=(only,))


class Cards:
    """Which cards running tasks hold: those that the case names, and the first others where it names none."""

    def __init__(self, case: Case) -> None:
        self._nodes = {node["name"]: node for node in case["nodes"]}
        self._named: dict[str, set[int]] = defaultdict(set)
        self._instances: Counter[tuple[str, str]] = Counter()
        for job in case["jobs"]:
            for pod in job["pods"]:
                if pod["state"] == "Running":
                    self._named[pod["node"]] |= {int(name) for name in pod.get("gpu_devices", ())}

    def of(self, pod: Case, task: Task) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the cards of a running task, and the slots of its instance."""
        if task.mig_profile:
            return self._slot(pod["node"], task.mig_profile)
        named = tuple(int(name) for name in pod.get("gpu_devices", ()))
        if len(named) == task.gpus:
            return named, ()
        if task.gpu_share is not None and self._nodes[pod["node"]]["gpus"] == 1:
            return (0,), ()
        if task.gpu_share is not None:
            raise InexpressibleError("jobs.running.tasks.gpus", "the case does not say which card a share is of")
        free = [card for card in range(self._nodes[pod["node"]]["gpus"]) if card not in self._named[pod["node"]]]
        taken = tuple(free[: task.gpus])
        self._named[pod["node"]].update(taken)
        return taken, ()

    def _slot(self, node: str, profile: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        card = self._nodes[node]["gpus"] + self._instances[node, profile]
        self._instances[node, profile] += 1
        for gpu in _sliced(self._nodes[node]):
            if gpu.mig_layout[0].profile == profile:
                return (card,), (gpu.mig_layout[0].start,)
            card += gpu.count
        raise InexpressibleError("jobs.running.tasks.gpus", f"{node} has no instance of {profile}")


# --- jobs --------------------------------------------------------------------------------------------------------


def _job(case: Case, job: Case, where: Cards) -> Job:
    if job["pods"][0]["state"] != "Running":
        return Job(name=job["name"], priority=job["priority"], groups=gang_of(case, job))
    placed: list[RunningTask] = []
    groups = tuple(TaskGroup(name=f"pod-{number}", groups=tuple(_pod(case, job, pod))) for number, pod in _each(job))
    for number, pod in _each(job):
        for group in groups[number].groups:
            assert group.task is not None
            for index in range(group.count):
                gpus, starts = where.of(pod, group.task)
                path = f"pod-{number}/{group.name}"
                placed.append(RunningTask(group=path, index=index, node=pod["node"], gpus=gpus, mig_starts=starts))
    return Job(name=job["name"], priority=job["priority"], groups=groups, running=Running(tasks=tuple(placed)))


def _each(job: Case) -> Iterator[tuple[int, Case]]:
    yield from enumerate(job["pods"])


def gang_of(case: Case, job: Case) -> tuple[TaskGroup, ...]:
    """Return the groups of a pending job, lying as it asks for."""
    groups = tuple(groups_of(case, job))
    topology = job["gang"].get("topology")
    if topology is None:
        return groups
    rules = topology_of(required=topology.get("required_level", ""), preferred=topology.get("preferred_level", ""))
    return (TaskGroup(name="gang", groups=groups, topology=rules),)


def groups_of(case: Case, job: Case) -> Iterator[TaskGroup]:
    """Yield the groups of a pending job: its sets of pods, or each pod where all of them are needed."""
    podsets = job["gang"].get("podsets")
    if not podsets:
        for number, pod in _each(job):
            yield _together(f"pod-{number}", 1, 1, tuple(_pod(case, job, pod)))
        return
    for podset in podsets:
        pods = [pod for pod in job["pods"] if pod.get("podset", podset["name"]) == podset["name"]]
        parts = [tuple(_pod(case, job, pod)) for pod in pods]
        if any(part != parts[0] for part in parts):
            raise UntranslatedError("jobs.groups.min_count", "some pods of a set of unlike ones")
        if podset["min"] > len(pods):
            raise InexpressibleError("jobs.groups.min_count", f"{podset['min']} of {len(pods)} pods")
        if podset["min"] < 1:
            raise InexpressibleError("jobs.groups.min_count", "0, a group that may stay away beside one that may not")
        yield _together(podset["name"], len(pods), podset["min"], parts[0])


def _together(name: str, count: int, fewest: int, parts: tuple[TaskGroup, ...]) -> TaskGroup:
    """Return a group of copies of a pod; the tasks of each lie on one node."""
    several = sum(part.count for part in parts) > 1
    topology = topology_of(required="node") if several else None
    if fewest < count and several:
        raise UntranslatedError("jobs.groups.min_count", "some of the pods of several instances")
    if several:
        return TaskGroup(name=name, count=count, groups=parts, topology=topology)
    return TaskGroup(name=name, count=count, min_count=fewest, task=parts[0].task)


def _instances(pod: Case) -> dict[str, int]:
    """Return how many MIG instances of each profile a pod asks for."""
    return {mig.plain_profile(name): count for name, count in pod.get("mig", {}).items()}


def _pod(case: Case, job: Case, pod: Case) -> Iterator[TaskGroup]:
    """Yield a group for each kind of task of a pod: one task, or as many as it has MIG instances."""
    usual: dict[str, Any] = {}
    if "cpu_milli_per_pod" in job:
        usual["cpu"] = f"{job['cpu_milli_per_pod']}m"
    if "memory_bytes_per_pod" in job:
        usual["memory"] = job["memory_bytes_per_pod"]
    instances = _instances(pod)
    if not instances:
        yield TaskGroup(name="task", task=Task(**usual, **_asked(case, job, pod)))
        return
    if usual and sum(instances.values()) > 1:
        raise UntranslatedError("jobs.groups.task", "CPU or memory of a pod of several instances")
    for profile, count in instances.items():
        yield TaskGroup(name=profile.replace(".", "-"), count=count, task=Task(gpus=1, mig_profile=profile, **usual))


def _asked(case: Case, job: Case, pod: Case) -> dict[str, Any]:
    """Return what a pod asks of cards: whole ones, a share, or memory, which is a share too."""
    cards = pod.get("gpus", job.get("gpus_per_pod", 0))
    needed = job.get("gpu_memory_per_pod_mib")
    if needed is None:
        return {"gpus": 1, "gpu_share": cards} if cards != int(cards) else {"gpus": int(cards)}
    sizes = {node.get("gpu_memory_mib", CARD_MIB) for node in case["nodes"]}
    if len(sizes) > 1:
        raise InexpressibleError("jobs.groups.task.gpu_share", "a share that depends on the card")
    share = Decimal(needed) / Decimal(sizes.pop())
    return {"gpus": 1, "gpu_share": str(share), "gpu_memory": f"{needed}Mi"}
