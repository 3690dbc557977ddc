"""Pods and gangs: the jobs of the snapshot, running and pending.

Pods that run come first, since what they hold decides what others may have: those of which something says the cards,
then whole cards and instances, then shares. A pod that is bound to a node runs; one that is over holds nothing; one
that is being deleted holds all that it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache

from placement.errors import InputError
from placement.formats.kubernetes.apart import Apart
from placement.formats.kubernetes.asks import Asks, Tasks
from placement.formats.kubernetes.card_names import named
from placement.formats.kubernetes.cards import Cards
from placement.formats.kubernetes.claims import Claims
from placement.formats.kubernetes.entries import NODE, Entry, Members
from placement.formats.kubernetes.jobs import Jobs
from placement.formats.kubernetes.labels import Labels
from placement.formats.kubernetes.namespaces import Namespaces
from placement.formats.kubernetes.objects import Item, Meta, Objects
from placement.formats.kubernetes.parts import Addition, Cluster, Devices, Gang, GangGroup
from placement.formats.kubernetes.pod import Pod, PodStatus
from placement.formats.kubernetes.ports import Ports
from placement.formats.kubernetes.priorities import Priorities, ranked
from placement.formats.kubernetes.resized import enlarge
from placement.formats.kubernetes.running import Runs
from placement.formats.kubernetes.volumes import Volumes
from placement.formats.kubernetes.worked import worked
from placement.formats.ledger import Ledger
from placement.snapshot import Job, Node
from placement.snapshot.fields import wrong_name
from placement.snapshot.report import show

OVER = ("Succeeded", "Failed")
KUEUE_GATES = "kueue.x-k8s.io/"
HOSTNAME = "kubernetes.io/hostname"


def read(
    objects: Objects, cluster: Cluster, devices: Devices, additions: Sequence[Addition], ledger: Ledger
) -> tuple[tuple[Node, ...], tuple[Job, ...]]:
    """Return the nodes, with what jobs select them by, and the jobs.

    Parameters
    ----------
    objects : Objects
    cluster : Cluster
    devices : Devices
    additions : sequence of Addition
        A pod belongs to the first that knows it.
    ledger : Ledger

    Raises
    ------
    InputError
        If a pod is not what its kind has to be.
    """
    reader = _Reader(objects, cluster, devices, additions, ledger)
    jobs = reader.jobs()
    nodes = worked(named(reader.labels.named(), reader.runs.holdings.names()), jobs)
    return nodes, ranked(jobs, ledger)


class _Reader:
    def __init__(
        self, objects: Objects, cluster: Cluster, devices: Devices, additions: Sequence[Addition], ledger: Ledger
    ) -> None:
        self.cluster = cluster
        self.additions = additions
        self.ledger = ledger
        self.labels = Labels(cluster.nodes)
        self.cards = Cards(cluster, devices, self.labels)
        self.asks = Asks(self.cards, self.labels)
        self.priorities = Priorities(objects, ledger)
        self.gangs: dict[tuple[int, str], Members] = {
            (number, gang.key): Members(gang) for number, addition in enumerate(additions) for gang in addition.gangs
        }
        self.over: list[Item[Pod]] = []
        self.items = self._there(objects)
        self.claims = Claims(devices, self.items, ledger)
        self._bind_claimed()
        self.items += self.claims.unused()
        self.apart = Apart(cluster, self.labels, Namespaces(objects), ledger)
        self.ports = Ports(self.labels, ledger)
        self.volumes = Volumes(objects, self.labels, ledger)
        self.runs = Runs(self.labels, self.cards, self.asks, self.claims, ledger)

    # --- which pods there are ------------------------------------------------------------------------------------

    def _there(self, objects: Objects) -> list[Item[Pod]]:
        """Return the pods that are not over, each once."""
        seen: dict[str, Item[Pod]] = {}
        for item in objects.of("", "Pod", Pod):
            meta = item.value.metadata
            if not meta.name:
                raise InputError.one("the pod has no name", "dump it again", path=item.path, source=item.file)
            if what := wrong_name(meta.key):
                path = f"{item.path}.metadata".removeprefix(".")
                raise InputError.one(f"a pod: {what}", "dump it again", path=path, source=item.file)
            if (item.value.status or PodStatus()).phase in OVER:
                self.ledger.ignored("pods that are over", "they hold nothing", item.where)
                self.over.append(item)
            elif meta.key in seen and item.value.spec.node_name and not seen[meta.key].value.spec.node_name:
                self.ledger.contradiction("pods that wait in one place and run in another", "they run", item.where)
                seen[meta.key] = item
                self._complete(item.value)
            elif meta.key in seen and item.value.spec.node_name not in (None, "", seen[meta.key].value.spec.node_name):
                self.ledger.contradiction("pods of one name that run on several nodes", "all of them run", item.where)
                while meta.key in seen:
                    meta.name += "#"
                seen[meta.key] = item
            elif meta.key in seen:
                if meta.uid == seen[meta.key].value.metadata.uid:
                    self.ledger.ignored("pods that are listed twice", "they are the same", item.where)
                else:
                    self.ledger.contradiction("two pods of one name", "the first of them", item.where)
            else:
                seen[meta.key] = item
                self._complete(item.value)
        for item in seen.values():
            if item.value.spec.node_name:
                enlarge(item, self.ledger)
        return list(seen.values())

    def _complete(self, pod: Pod) -> None:
        """Add to a pod what other systems say of it: the node that it is being bound to, or what it will ask for."""
        if not pod.spec.node_name:
            pod.spec.node_name = next((node for one in self.additions if (node := one.bound(pod))), None)
        if not pod.spec.node_name:
            for addition in self.additions:
                pod.spec = addition.spec_of(pod)

    def _bind_claimed(self) -> None:
        """Bind pods that wait to the node that has the devices allocated to them: nobody else gets these."""
        for item in self.items:
            spec = item.value.spec
            node = self.claims.node_of(item.value) if spec.resource_claims and not spec.node_name else ""
            if node in self.labels.index:
                spec.node_name = node
                what = "pods that wait and whose claims have devices"
                self.ledger.assumed(what, "they are bound to the node of their devices", item.where)

    # --- jobs ----------------------------------------------------------------------------------------------------

    def jobs(self) -> list[Job]:
        """Return all jobs in the order of the files; gangs at the first of their pods."""
        running = [item for item in self.items if item.value.spec.node_name]
        pending = [item for item in self.items if not item.value.spec.node_name]
        entries = self._running(running)
        for item in pending:
            entries[item.value.metadata.key] = self._pending(item)
        self.ledger.read("running pods", count=len(entries) - len(pending))
        self.ledger.read("pending pods", count=len(pending))
        order: dict[str | tuple[int, str], Entry | Members] = {}
        queues: dict[str, str] = {}
        for item in self.items:
            entry = entries.get(item.value.metadata.key)
            if entry is None:
                continue
            home, group, queue = self._home(item.value)
            if home is not None and home[1] in self.additions[home[0]].withheld and not entry.node:
                self.ledger.ignored("pods of gangs that their system holds back", "they do not start", item.where)
            elif home is None:
                order[entry.name] = entry
                queues[entry.name] = queue
                self.apart.note_alone(entry, item.where, item.file)
            else:
                members = self.gangs.setdefault(home, Members(None))
                members.queue = members.queue or queue
                members.groups.setdefault(group, []).append(entry)
                order[home] = members
        for item in self.over:
            home, group, _ = self._home(item.value)
            if home is not None and home in self.gangs:
                over = self.gangs[home].over
                over[group] = over.get(group, 0) + 1
        for home, members in self.gangs.items():
            order.setdefault(home, members)
        maker = Jobs(
            self.ledger,
            {name for name in order if isinstance(name, str)},
            self._level,
            self._template,
            self._near,
        )
        jobs: list[Job] = []
        for key, found in order.items():
            if isinstance(found, Entry):
                jobs.append(maker.alone(found, queues[found.name]))
            elif found.gang is not None and found.gang.started and not found.groups and not found.over:
                why = "what was promised to it looks free"
                self.ledger.unsupported("a gang that was started, without pods", why, found.gang.where)
            elif found.groups or not found.over:
                jobs += maker.together(key[1] if isinstance(key, tuple) else key, found)
        return jobs

    def _home(self, pod: Pod) -> tuple[tuple[int, str] | None, str, str]:
        """Return the gang and group that a pod belongs to, if any, and its queue."""
        queue = ""
        for number, addition in enumerate(self.additions):
            member = addition.member(pod)
            if member is not None:
                return (number, member[0]), member[1], queue or addition.queue_of(pod) or ""
            queue = queue or addition.queue_of(pod) or ""
        return None, "", queue

    def _level(self, name: str) -> str | None:
        if name in self.cluster.levels or name in (NODE, "cluster"):
            return name
        return NODE if name == HOSTNAME else self.cluster.level_of.get(name)

    def _template(self, gang: Gang, group: GangGroup) -> Tasks:
        """Return what a pod that does not exist yet will ask for."""
        assert group.template is not None
        namespace, _, name = gang.key.partition("/")
        pod = Pod(metadata=Meta(name=name, namespace=namespace), spec=group.template)
        file, _, path = gang.where.partition(": ")
        item = Item(file, path, pod)
        ask = self.asks.of(item)
        ask.notes.say(self.ledger, item.where, item.file)
        tasks, notes = self.asks.pending(ask, tuple(part for part, _ in self.claims.of(item)))
        notes.say(self.ledger, item.where, item.file)
        return tasks

    def _near(self, tasks: Tasks, level: str, nodes: set[str]) -> Tasks:
        if level == "cluster":
            return tasks
        found = {self._domain(self.labels.index[name], level) for name in nodes}
        if len(found) != 1 or None in found:
            self.ledger.contradiction("a gang that must be in one domain runs in several", "what is left of it is free")
            return tasks
        domain = next(iter(found))
        inside = frozenset(index for index in self.labels.every if self._domain(index, level) == domain)
        return self.asks.kept_to(tasks, inside, "domain")

    def _domain(self, index: int, level: str) -> str | None:
        node = self.cluster.nodes[index]
        return node.name if level == NODE else node.domains.get(level)

    # --- pending pods --------------------------------------------------------------------------------------------

    def _pending(self, item: Item[Pod]) -> Entry:
        pod = item.value
        ask = self.asks.of(item)
        ask.notes.say(self.ledger, item.where, item.file)
        for gate in pod.spec.scheduling_gates or ():
            if not str(gate.get("name", "")).startswith(KUEUE_GATES):
                self.ledger.assumed("pods that a scheduling gate holds back", "they wait like others", item.where)
        within: frozenset[int] | None = None
        for here in (self.apart.allowed(item), self.ports.allowed(item), self.volumes.allowed(item)):
            if here is not None:
                within = here if within is None else within & here
        claimed = self.claims.of(item)
        for at in self.claims.nodes_of(pod):
            there = frozenset((self.labels.index[at],)) if at in self.labels.index else frozenset()
            within = there if within is None else within & there
            why = "the pod is kept to their node, and asks for what is missing"
            self.ledger.assumed("devices that claims of pending pods have", why, item.where)
        tasks, notes = self.asks.pending(ask, tuple(part for part, _ in claimed), within)
        notes.say(self.ledger, item.where, item.file)
        entry = self._entry(item, tasks)
        entry.claim = self.claims.called(pod)
        return entry

    def _entry(self, item: Item[Pod], tasks: Tasks) -> Entry:
        spread, together = self.apart.of_itself(item)
        return Entry(
            item,
            tasks,
            priority=self.priorities.of(item.value.spec, item.where),
            made=_time(item.value.metadata.creation_timestamp, "metadata.creationTimestamp", item),
            spread=spread,
            together=together,
        )

    # --- running pods --------------------------------------------------------------------------------------------

    def _running(self, items: Sequence[Item[Pod]]) -> dict[str, Entry]:
        """Return the running pods by name, with what they hold."""
        entries: dict[str, Entry] = {}
        for item in items:
            node = item.value.spec.node_name or ""
            if node not in self.labels.index:
                self.ledger.contradiction(
                    "a pod runs on a node that is not in the files", "it is left out: it holds nothing here", item.where
                )
                continue
            entry = self._entry(item, ())
            entry.node = node
            entry.shared = next((names for one in self.additions if (names := one.shared(item.value))), ())
            entry.since = _time((item.value.status or PodStatus()).start_time, "status.startTime", item)
            entries[entry.name] = entry
            self.apart.runs(item, self.labels.index[node])
            self.ports.runs(item, self.labels.index[node])
        self.runs.hold(list(entries.values()))
        return entries


def _time(text: str | None, field: str, item: Item[Pod]) -> float | None:
    if not text:
        return None
    try:
        return _seconds(text)
    except (ValueError, OverflowError):
        raise InputError.one(
            f"found {show(text)}, expected a time such as 2026-01-31T12:00:00Z",
            "correct the time",
            path=f"{item.path}.{field}".removeprefix("."),
            source=item.file,
        ) from None


@lru_cache(maxsize=65536)
def _seconds(text: str) -> float:
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
