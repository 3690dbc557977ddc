"""What a waiting job asks for, as groups of tasks: how many, and what each needs of its node.

A task is what the job has on one node, where it asks by node; where it asks by task, the job's own tasks are placed one
by one. How many nodes a job needs that asks for cards in all is computed: the count that Slurm shows is the least that
it asked for, 1 by default.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from placement.formats.kubernetes.objects import Item
from placement.formats.ledger import Ledger
from placement.formats.slurm.gres import Gres, amount, others, parse, tres
from placement.formats.slurm.nodes import Host, counted, zones
from placement.formats.slurm.numbers import bounded, whole
from placement.formats.slurm.records import JobRecord, texts
from placement.snapshot import Spread, Task, TaskGroup, Topology
from placement.snapshot.fields import MOST_CARDS, MOST_TASKS

MEBI = 2**20


@dataclass(frozen=True, slots=True)
class Choice:
    """What there is to choose from: the nodes that a job may use.

    Attributes
    ----------
    kinds : Counter of tuple of (str, int)
        Nodes by what cards they have: type and number of each.
    near : int
        Most cards at one socket of a node; 0 where no node says which they are near.
    """

    kinds: Counter[tuple[tuple[str, int], ...]]
    near: int

    @classmethod
    def of(cls, hosts: Iterable[Host]) -> Choice:
        """Return the choice of some nodes."""
        found, near = Counter[tuple[tuple[str, int], ...]](), 0
        for host in hosts:
            found[tuple((gres.type, gres.count) for gres in host.gres if gres.is_card)] += 1
            near = max(near, max((len(zone.gpus) for zone in zones(host)), default=0))
        return cls(found, near)

    def size(self, types: set[str], default: int) -> int:
        """Return how many cards of some types the commonest node has; of equally common sizes the larger one."""
        sizes = Counter[int]()
        for kind, count in self.kinds.items():
            sizes[sum(cards for name, cards in kind if "" in types or name in types)] += count
        sizes.pop(0, None)
        return max(sizes, key=lambda size: (sizes[size], size)) if sizes else default


@dataclass(frozen=True, slots=True)
class _Ask:
    """Numbers of a job: GRES by what they count for, threads and MiB."""

    item: Item[JobRecord]
    job: tuple[Gres, ...]
    node: tuple[Gres, ...]
    socket: tuple[Gres, ...]
    task: tuple[Gres, ...]
    nodes: int
    most_nodes: int
    fixed_nodes: bool
    tasks: int
    cpus: int
    cpus_per_task: int
    least_cpus: int
    cpus_per_gpu: int
    memory_per_gpu: int
    memory_per_cpu: int
    memory_per_node: int
    near: int
    """Most cards at one socket of the nodes; 0 for a job whose cores need not be near its cards."""

    def needs(self, gres: tuple[Gres, ...], cpus: int, node: bool) -> Task:
        """Return a task with GRES and threads."""
        cards = [one for one in gres if one.is_card and one.count]
        gpus = sum(one.count for one in cards)
        threads = max(cpus, self.cpus_per_gpu * gpus, self.least_cpus if node else 0)
        memory = max(self.memory_per_cpu * threads, self.memory_per_gpu * gpus, self.memory_per_node if node else 0)
        types = {one.type for one in cards}
        bounded(self.item, "tres_per_node" if node else "tres_per_task", gpus, MOST_CARDS)
        bounded(self.item, "cpus", threads)
        bounded(self.item, "memory_per_cpu", memory)
        return Task(
            gpus=gpus,
            cpu=threads,
            memory=f"{memory}Mi" if memory else 0,
            extended={name: count for name, count in counted(gres).items() if count},
            gpu_models=tuple(sorted(types)) if gpus and "" not in types else (),
            numa="none" if not (self.near and gpus) else "single-numa-node" if gpus <= self.near else "restricted",
        )


def groups(item: Item[JobRecord], choice: Choice, ledger: Ledger) -> tuple[TaskGroup, ...]:
    """Return the groups of a waiting job.

    Parameters
    ----------
    item : Item
    choice : Choice
    ledger : Ledger
    """
    ask = _ask(item, choice, ledger)
    where = item.where
    node = ask.node
    if not node and ask.socket:
        sockets = whole(item, "sockets_per_node", item.value.sockets_per_node, short=True) or 0
        if not sockets:
            sockets = 1
            ledger.assumed("sockets of a node that a job with GRES per socket uses", "1", where)
        node = tuple(Gres(one.name, one.type, one.count * sockets) for one in ask.socket)
    mixed = [one for one in (ask.task or node or ask.job) if one.is_card and one.count]
    if len({one.type for one in mixed}) > 1:
        ledger.unsupported("cards of several types in one request", "any of these types", where, item.file)
    if ask.task:
        return _by_task(ask, node, ledger)
    total = _cards(ask.job)
    if total and _cards(node):
        return _by_node(ask, node, max(1, -(-total // _cards(node))), None)
    if node or not total:
        if not node and not ask.fixed_nodes and ask.nodes == 1 and ask.tasks > 1:
            return _by_task(ask, (), ledger)
        least = ask.nodes if ask.most_nodes > ask.nodes else None
        if not node and ask.job:
            ledger.assumed("GRES of a whole job", "an equal part on each node", where)
            node = tuple(Gres(one.name, one.type, -(-one.count // ask.nodes)) for one in ask.job)
        return _by_node(ask, node, max(ask.nodes, ask.most_nodes), least)
    return _in_all(ask, choice, ledger)


def _by_task(ask: _Ask, node: tuple[Gres, ...], ledger: Ledger) -> tuple[TaskGroup, ...]:
    """Return the groups of a job that asks by task: its own tasks, or as many as belong on a node together."""
    tasks, each = ask.tasks, ask.task
    if _cards(ask.job) and _cards(each):
        tasks = max(1, -(-_cards(ask.job) // _cards(each)))
    cpus = ask.cpus_per_task
    for_node = whole(ask.item, "tasks_per_node", ask.item.value.tasks_per_node, short=True) or 0
    if _cards(node) and _cards(each):
        for_node = max(1, _cards(node) // _cards(each))
    if ask.fixed_nodes and not for_node and tasks % ask.nodes == 0:
        for_node = tasks // ask.nodes
        ledger.assumed("tasks on each node", "equally many", ask.item.where)
    if for_node > 1 and tasks % for_node == 0:
        # so many tasks of the job make one of ours
        whole_node = tuple(Gres(one.name, one.type, one.count * for_node) for one in each)
        task = ask.needs(whole_node, cpus * for_node, node=True)
        return (_group("node", tasks // for_node, task, apart=True),)
    apart = for_node == 1
    if ask.fixed_nodes and not apart and (ask.nodes > 1 or for_node):
        ledger.unsupported("tasks over a number of nodes", "they may use others", ask.item.where, ask.item.file)
    if not apart and tasks > 1:
        if ask.memory_per_node:
            what = "memory by node of a job whose tasks may be on any nodes"
            ledger.unsupported(what, "each task asks for its part of it", ask.item.where, ask.item.file)
        ask = replace(ask, memory_per_node=-(-ask.memory_per_node // tasks), least_cpus=0)
    group = _group("task", tasks, ask.needs(each, cpus, node=True), apart)
    if ask.fixed_nodes and ask.nodes == 1 and tasks > 1 and not apart:
        return (TaskGroup(name="task", count=tasks, task=group.task, topology=Topology(required="node")),)
    return (group,)


def _by_node(ask: _Ask, node: tuple[Gres, ...], nodes: int, least: int | None) -> tuple[TaskGroup, ...]:
    """Return the groups of a job that wants the same on each of some nodes."""
    cpus = max(ask.cpus, ask.tasks * ask.cpus_per_task)
    task = ask.needs(node, -(-cpus // (least or nodes)), node=True)
    return (_group("node", nodes, task, apart=True, least=least),)


def _in_all(ask: _Ask, choice: Choice, ledger: Ledger) -> tuple[TaskGroup, ...]:
    """Return the groups of a job that asks for cards in all: full nodes of the commonest size, and a remainder."""
    total = _cards(ask.job)
    types = {one.type for one in ask.job if one.is_card and one.count}
    size = choice.size(types, total)
    nodes = ask.nodes if ask.fixed_nodes else max(ask.nodes, -(-total // size))
    nodes = min(nodes, total)
    if nodes > 1:
        how = "as few nodes as can be, full but for the last"
        ledger.assumed("cards on each node of a job that asks for them in all", how, ask.item.where)
    parts = Counter[int]()
    if not ask.fixed_nodes and nodes == -(-total // size):
        parts[size] += total // size
        parts[total % size] += 1
    else:
        parts[total // nodes] += nodes - total % nodes
        parts[total // nodes + 1] += total % nodes
    all_cards = _cards(ask.job)
    found: list[TaskGroup] = []
    for count, times in sorted(parts.items(), reverse=True):
        if not count or not times:
            continue
        gres = (
            *_part([one for one in ask.job if one.is_card], count, all_cards),
            *(Gres(one.name, one.type, -(-one.count // nodes)) for one in ask.job if not one.is_card),
        )
        cpus = max(ask.cpus, ask.tasks * ask.cpus_per_task)
        task = ask.needs(gres, -(-cpus * count // all_cards), node=True)
        found.append(_group("node" if not found else "rest", times, task, apart=True))
    return tuple(found)


def _part(cards: list[Gres], count: int, total: int) -> list[Gres]:
    """Return some of the cards of a job: of several types, each in its part."""
    found: list[Gres] = []
    for one in cards:
        mine = -(-one.count * count // total) if total else 0
        mine = min(mine, count - sum(other.count for other in found))
        found.append(Gres(one.name, one.type, mine))
    return found


def _group(name: str, count: int, task: Task, apart: bool, least: int | None = None) -> TaskGroup:
    """Return a group; tasks that are apart are on nodes of their own."""
    topology = Topology(spread=(Spread(level="node", max_per_domain=1),)) if apart and count > 1 else None
    return TaskGroup(name=name, count=count, min_count=least, task=task, topology=topology)


def _cards(gres: Iterable[Gres]) -> int:
    return sum(one.count for one in gres if one.is_card)


def _ask(item: Item[JobRecord], choice: Choice, ledger: Ledger) -> _Ask:
    job = item.value

    def listed(name: str) -> tuple[Gres, ...]:
        return parse(getattr(job, name), item.file, f"{item.path}.{name}")

    def number(name: str, short: bool = False) -> int:
        return whole(item, name, getattr(job, name), short) or 0

    for name in ("tasks", "node_count", "max_nodes"):
        bounded(item, name, number(name), MOST_TASKS)
    per_task = others(job.tres_per_task, item.file, f"{item.path}.tres_per_task")
    cpus_per_task = number("cpus_per_task", short=True)
    if "cpu" in per_task:
        cpus_per_task = amount(per_task["cpu"], item.file, f"{item.path}.tres_per_task")
    total = tres(job.tres_req_str, item.file, f"{item.path}.tres_req_str")
    cpus = number("cpus")
    nodes = max(1, number("node_count"))
    most = number("max_nodes")
    per_node = number("memory_per_node")
    if not (per_node or number("memory_per_cpu") or job.memory_per_tres) and "mem" in total:
        per_node = -(-amount(total["mem"], item.file, f"{item.path}.tres_req_str", MEBI) // MEBI // nodes)
    near = 0
    if "GRES_BINDING_ENFORCED" in texts(job.flags):
        near = choice.near
        if not near:
            what = "cores that must be near the cards"
            ledger.unsupported(what, "no node says which sockets its cards are near", item.where, item.file)
    for name in ("threads_per_core", "cores_per_socket", "minimum_tmp_disk_per_node"):
        if number(name, short=not name.startswith("minimum")):
            ledger.unsupported(f"field {name} of a job", "a snapshot has no place for it", item.where, item.file)
    return _Ask(
        item=item,
        job=listed("tres_per_job"),
        node=listed("tres_per_node"),
        socket=listed("tres_per_socket"),
        task=listed("tres_per_task"),
        nodes=nodes,
        most_nodes=most,
        fixed_nodes=most > 0 and most == nodes,
        tasks=max(1, number("tasks")),
        cpus=cpus,
        cpus_per_task=max(1, cpus_per_task),
        least_cpus=number("minimum_cpus_per_node", short=True),
        cpus_per_gpu=_per_gpu(item, "cpus_per_tres", 1),
        memory_per_gpu=-(-_per_gpu(item, "memory_per_tres", MEBI) // MEBI),
        memory_per_cpu=number("memory_per_cpu"),
        memory_per_node=per_node,
        near=near,
    )


def _per_gpu(item: Item[JobRecord], name: str, unit: int) -> int:
    """Return what a field such as ``gres/gpu:4`` or ``gres:gpu:16384`` says for each GPU."""
    text = (getattr(item.value, name) or "").partition(";")[0].strip()
    if text.lower() in ("", "(null)", "n/a"):
        return 0
    number = text.rpartition("=" if "=" in text else ":")[2]
    return amount(number, item.file, f"{item.path}.{name}", unit)
