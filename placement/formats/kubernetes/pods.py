"""Pods and gangs: the jobs of the snapshot, running and pending.

Pods that run come first, since what they hold decides what others may have: those of which something says the cards,
then whole cards and instances, then shares. A pod that is bound to a node runs; one that is over holds nothing; one
that is being deleted holds all that it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache

from placement.errors import InputError
from placement.formats.kubernetes.apart import Apart
from placement.formats.kubernetes.asks import GROUP, RESERVATION, Asks, OnNode, Tasks
from placement.formats.kubernetes.cards import Cards, Part, thousandths
from placement.formats.kubernetes.holdings import GPUS, HAMI, Held, Holdings, says, stated
from placement.formats.kubernetes.jobs import NODE, Entry, Jobs, Members
from placement.formats.kubernetes.labels import Labels
from placement.formats.kubernetes.objects import Item, Meta, Objects
from placement.formats.kubernetes.parts import Addition, Claim, Cluster, Devices, Gang, GangGroup, Offer
from placement.formats.kubernetes.pod import Pod, PodStatus
from placement.formats.kubernetes.priorities import Priorities, ranked
from placement.formats.ledger import Ledger
from placement.hardware import mig
from placement.snapshot import Job, Node
from placement.snapshot.report import show

OVER = ("Succeeded", "Failed")
KUEUE_GATES = "kueue.x-k8s.io/"
HOSTNAME = "kubernetes.io/hostname"
RESERVED = "run.ai/reserve_for_gpu_index"
"""Annotation of a pod that reserves a card: its index or UUID."""


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
    return reader.labels.named(), ranked(jobs, ledger)


class _Reader:
    def __init__(
        self, objects: Objects, cluster: Cluster, devices: Devices, additions: Sequence[Addition], ledger: Ledger
    ) -> None:
        self.cluster = cluster
        self.devices = devices
        self.additions = additions
        self.ledger = ledger
        self.labels = Labels(cluster.nodes)
        self.cards = Cards(cluster, devices, self.labels)
        self.asks = Asks(self.cards, self.labels)
        self.holdings = Holdings(ledger)
        self.priorities = Priorities(objects, ledger)
        self.gangs: dict[tuple[int, str], Members] = {
            (number, gang.key): Members(gang) for number, addition in enumerate(additions) for gang in addition.gangs
        }
        self.users: dict[str, int] = {}
        self.over: list[Item[Pod]] = []
        self.items = self._there(objects)
        self.apart = Apart(cluster, self.labels, ledger)

    # --- which pods there are ------------------------------------------------------------------------------------

    def _there(self, objects: Objects) -> list[Item[Pod]]:
        """Return the pods that are not over, each once."""
        seen: dict[str, Item[Pod]] = {}
        for item in objects.of("", "Pod", Pod):
            meta = item.value.metadata
            if not meta.name:
                raise InputError.one("the pod has no name", "dump it again", path=item.path, source=item.file)
            if (item.value.status or PodStatus()).phase in OVER:
                self.ledger.ignored("pods that are over", "they hold nothing", item.where)
                self.over.append(item)
            elif meta.key in seen:
                if meta.uid == seen[meta.key].value.metadata.uid:
                    self.ledger.ignored("pods that are listed twice", "they are the same", item.where)
                else:
                    self.ledger.contradiction("two pods of one name", "the first of them", item.where)
            else:
                seen[meta.key] = item
                for key in self._claims(item.value):
                    self.users[key] = self.users.get(key, 0) + 1
        return list(seen.values())

    # --- jobs ----------------------------------------------------------------------------------------------------

    def jobs(self) -> list[Job]:
        """Return all jobs in the order of the files; gangs at the first of their pods."""
        running = [item for item in self.items if item.value.spec.node_name]
        pending = [item for item in self.items if not item.value.spec.node_name]
        entries = self._running(running)
        for item in running:
            if item.value.metadata.key in entries:
                self.apart.runs(item, self.labels.index[item.value.spec.node_name or ""])
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
            if home is None:
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
        tasks, notes = self.asks.pending(ask, self._asked_by_claims(pod, item))
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
        within = self.apart.allowed(item)
        for claim in self._named_claims(pod):
            if claim.node and claim.node in self.labels.index:
                at = frozenset((self.labels.index[claim.node],))
                within = at if within is None else within & at
                self.ledger.unsupported(
                    "devices that a claim of a pending pod has",
                    "the pod is kept to their node only",
                    item.where,
                    item.file,
                )
        tasks, notes = self.asks.pending(ask, self._asked_by_claims(pod, item), within)
        notes.say(self.ledger, item.where, item.file)
        return self._entry(item, tasks)

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

    # --- claims --------------------------------------------------------------------------------------------------

    def _claims(self, pod: Pod) -> list[str]:
        """Return the keys of the claims that a pod refers to by name."""
        if not pod.spec.resource_claims:
            return []
        statuses = (pod.status or PodStatus()).resource_claim_statuses or ()
        generated = {status.name: status.resource_claim_name for status in statuses}
        names = [claim.resource_claim_name or generated.get(claim.name) for claim in pod.spec.resource_claims]
        return [f"{pod.metadata.namespace or 'default'}/{name}" for name in names if name]

    def _named_claims(self, pod: Pod) -> list[Claim]:
        return [self.devices.claims[key] for key in self._claims(pod) if key in self.devices.claims]

    def _asked_by_claims(self, pod: Pod, item: Item[Pod]) -> tuple[Part, ...]:
        """Return the cards that a pod's claims, and templates of claims, ask for."""
        return tuple(part for part, _ in self._claimed(pod, item))

    def _claimed(self, pod: Pod, item: Item[Pod]) -> list[tuple[Part, Claim]]:
        if not pod.spec.resource_claims:
            return []
        namespace = pod.metadata.namespace or "default"
        statuses = (pod.status or PodStatus()).resource_claim_statuses or ()
        generated = {status.name: status.resource_claim_name for status in statuses}
        found: list[tuple[Part, Claim]] = []
        for one in pod.spec.resource_claims:
            key = f"{namespace}/{one.resource_claim_name or generated.get(one.name) or ''}"
            claim = self.devices.claims.get(key)
            if claim is None and one.resource_claim_template_name:
                claim = self.devices.templates.get(f"{namespace}/{one.resource_claim_template_name}")
            if claim is None:
                self.ledger.unsupported(
                    "a claim that is not in the files", "nothing says what it asks for", item.where, item.file
                )
                continue
            users = self.users.get(key, 1)
            found += [(part, claim) for part in _parts(claim, users)]
            if users > 1 and claim.gpus:
                self.ledger.assumed("cards of a claim that several pods share", "an equal share for each", item.where)
        return found

    # --- running pods --------------------------------------------------------------------------------------------

    def _running(self, items: Sequence[Item[Pod]]) -> dict[str, Entry]:
        """Return the running pods by name, with what they hold."""
        entries: dict[str, Entry] = {}
        later: list[tuple[Item[Pod], Entry, OnNode]] = []
        for item in items:
            pod = item.value
            name = pod.spec.node_name or ""
            index = self.labels.index.get(name)
            if index is None:
                self.ledger.contradiction(
                    "a pod runs on a node that is not in the files", "it is left out: it holds nothing here", item.where
                )
                continue
            ask = self.asks.of(item, pinned=_of_daemon(pod))
            ask.notes.say(self.ledger, item.where, item.file)
            claimed = self._claimed(pod, item)
            found = self.asks.running(ask, tuple(part for part, _ in claimed), index)
            found.notes.say(self.ledger, item.where, item.file)
            entry = self._entry(item, found.tasks)
            entry.node = name
            entry.since = _time((pod.status or PodStatus()).start_time, "status.startTime", item)
            entry.held = (Held(()),) * len(found.tasks)
            entries[pod.metadata.key] = entry
            self._note_group(pod, self.cluster.nodes[index])
            if found.parts and not self._known(item, entry, found, [claim for _, claim in claimed]):
                later.append((item, entry, found))
        for shares in (False, True):
            for item, entry, found in later:
                if any(part.share is not None for part, _ in found.parts) == shares:
                    self._assumed(item, entry, found)
        return entries

    def _note_group(self, pod: Pod, node: Node) -> None:
        """Note the card that a reserving pod holds for others."""
        meta = pod.metadata
        if meta.namespace not in RESERVATION or not meta.annotations or RESERVED not in meta.annotations:
            return
        group, said = (meta.labels or {}).get(GROUP, ""), meta.annotations[RESERVED]
        cards = {name: index for index, name in enumerate(node.devices)}
        card = cards.get(said, int(said) if said.isascii() and said.isdigit() and len(said) < 4 else -1)
        if group and 0 <= card < len(self.cards.of(node)):
            self.holdings.name_group(node, group, card)

    def _known(self, item: Item[Pod], entry: Entry, found: OnNode, claims: Sequence[Claim]) -> bool:
        """Give a pod the cards that something says it has; return whether anything does."""
        node = self.cluster.nodes[self.labels.index[entry.node]]
        annotations = item.value.metadata.annotations or {}
        said: list[tuple[int, int | None]] | None = None
        covered = len(found.parts)
        if annotations.keys() & {GPUS, HAMI}:
            said = stated(annotations, node)
            if said is None and says(annotations):
                self.ledger.contradiction(
                    "an annotation says cards that the node does not have, or in no known form",
                    "others are assumed",
                    item.where,
                )
        elif claims and all(claim.node == node.name for claim in claims):
            said, covered = _allocated(claims), len(claims)
        if said is None or len(said) != sum(part.gpus for part, _ in found.parts[:covered]):
            return False
        held: list[Held] = []
        gpus = self.cards.of(node)
        for part, offer in found.parts[:covered]:
            mine, said = said[: part.gpus], said[part.gpus :]
            starts = tuple(start for _, start in mine if start is not None)
            if part.profile and not starts:
                free = (first for card, first in zip(offer.cards, offer.starts, strict=False) if card == mine[0][0])
                taken = next(
                    (
                        one
                        for first in free
                        if (one := self.holdings.known(node, gpus, part, Held((mine[0][0],), (first,))))
                    ),
                    None,
                )
            else:
                given = Held(tuple(card for card, _ in mine), starts if part.profile else ())
                taken = self.holdings.known(node, gpus, part, given)
            if taken is None:
                self.ledger.contradiction(
                    "a pod is said to have cards or instances that it cannot have", "others are assumed", item.where
                )
                entry.held = (*held, *(Held(()) for _ in found.parts[len(held) :]))
                self._assumed(item, entry, found, len(held))
                return True
            held.append(taken)
        entry.held = (*held, *(Held(()) for _ in found.parts[covered:]))
        if covered < len(found.parts):
            self._assumed(item, entry, found, covered)
        return True

    def _assumed(self, item: Item[Pod], entry: Entry, found: OnNode, first: int = 0) -> None:
        """Give a pod cards that it may have, from one of its parts on."""
        node = self.cluster.nodes[self.labels.index[entry.node]]
        gpus = self.cards.of(node)
        held, tasks = list(entry.held), list(found.tasks)
        for number, (part, offer) in enumerate(found.parts):
            if number < first:
                continue
            if not offer.cards:
                offer = self._any(part, node)
            group = (item.value.metadata.labels or {}).get(GROUP, "")
            taken = None
            if part.profile or len({card for card in offer.cards if not gpus[card].mig_enabled}) >= part.gpus:
                bound = tasks[number].numa != "none"
                taken = self.holdings.assumed(node, gpus, part, offer, item.where, group, bound)
            if taken is None:
                self.ledger.contradiction(
                    "a pod runs with cards or instances of which its node has none left",
                    "it holds none, and the node takes no new work",
                    item.where,
                )
                self.labels.cordoned.add(self.labels.index[entry.node])
                tasks[number] = self.asks.without(tasks[number])
            else:
                held[number] = taken
        entry.held, entry.tasks = tuple(held), self.asks.kept(tuple(tasks))

    def _any(self, part: Part, node: Node) -> Offer:
        """Return an offer of all that could be the cards of a claim of which no allocation is known."""
        gpus = self.cards.of(node)
        if not part.profile:
            return Offer(tuple(card for card, gpu in enumerate(gpus) if not gpu.mig_enabled))
        pairs = [
            (card, start)
            for card, gpu in enumerate(gpus)
            if gpu.mig_enabled and (geometry := mig.geometry(gpu.model)) is not None
            if (profile := geometry.profile(part.profile)) is not None
            for start in profile.starts
        ]
        return Offer(tuple(card for card, _ in pairs), profile=part.profile, starts=tuple(start for _, start in pairs))


def _parts(claim: Claim, users: int) -> list[Part]:
    if not claim.gpus:
        return []
    if claim.profile:
        return [Part(1, profile=claim.profile, models=claim.gpu_models)] * claim.gpus
    return [Part(claim.gpus, None if users <= 1 else thousandths(Fraction(1, users)), models=claim.gpu_models)]


def _allocated(claims: Sequence[Claim]) -> list[tuple[int, int | None]] | None:
    """Return the cards and slots of claims, one claim for each part; None where one has none."""
    found: list[tuple[int, int | None]] = []
    for claim in {id(claim): claim for claim in claims}.values():
        starts: Sequence[int | None] = claim.starts if claim.profile else [None] * len(claim.cards)
        if len(claim.cards) != claim.gpus or len(starts) != len(claim.cards):
            return None
        found += zip(claim.cards, starts, strict=True)
    return found


def _of_daemon(pod: Pod) -> bool:
    return any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references or ())


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
