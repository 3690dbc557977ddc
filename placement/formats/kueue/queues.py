"""ClusterQueues and Cohorts: the tree of queues, and the cards that each may use.

Kueue counts each resource in each flavour; the snapshot counts cards by model. A flavour of which the node labels name
the card model is that model. Where a tree of queues has a flavour that does not, quotas are cards of any model.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from placement import units
from placement.formats.kubernetes.objects import Item, Objects
from placement.formats.kueue.flavours import Covered
from placement.formats.kueue.records import (
    GROUP,
    FlavorSpec,
    LocalQueue,
    QueueObject,
    QueueSpec,
    ResourceQuota,
    at,
    named,
    wrong,
)
from placement.formats.ledger import Ledger
from placement.quota import ALL
from placement.snapshot import Queue
from placement.snapshot.fields import MOST_WORTH
from placement.units import Quantity

PRODUCT = "nvidia.com/gpu.product"
"""Node label that names the card model."""

HELD = frozenset({"Hold", "HoldAndDrain"})


@dataclass(frozen=True, slots=True)
class Queues:
    """Queues, and what points at them.

    Attributes
    ----------
    queues : tuple of Queue
    covered : mapping of str to tuple of Covered
        Resources and flavours by ClusterQueue.
    local : mapping of str to str
        ClusterQueue by ``namespace/name`` of the LocalQueue.
    held : frozenset of str
        ClusterQueues that start nothing.
    held_local : frozenset of str
        LocalQueues that start nothing.
    preemptible : frozenset of str
        ClusterQueues of which workloads may be stopped for others.
    topologies : tuple of str
        Names of Topologies of their flavours, in the order of use.
    """

    queues: tuple[Queue, ...] = ()
    covered: Mapping[str, tuple[Covered, ...]] = field(default_factory=dict)
    local: Mapping[str, str] = field(default_factory=dict)
    held: frozenset[str] = frozenset()
    held_local: frozenset[str] = frozenset()
    preemptible: frozenset[str] = frozenset()
    topologies: tuple[str, ...] = ()


Found = Mapping[str, Item[QueueObject]]


def read(objects: Objects, flavours: Mapping[str, FlavorSpec], ledger: Ledger) -> Queues:
    """Return the queues.

    Raises
    ------
    InputError
        If a quota is no quantity, or Cohorts go round.
    """
    clusters = _by_name(objects.of(GROUP, "ClusterQueue", QueueObject), ledger)
    cohorts = _by_name(objects.of(GROUP, "Cohort", QueueObject), ledger)
    tree = _Tree(clusters, cohorts)
    for item in (*clusters.values(), *cohorts.values()):
        _note(item, ledger)
    tops = {name: tree.top(name) for name in tree.parents}
    pinned, stated = _kinds(tree, tops, flavours)
    queues = []
    for name, found in tree.items.items():
        by_model = pinned[tops[name]]
        if stated[tops[name]] > 1 and not by_model and found is not None and _cards(found):
            ledger.unsupported("quotas of several flavours", "cards are counted of any model", found.where)
        queues.append(_queue(name, found, tree, flavours, by_model, stated[tops[name]] > 0, ledger))
    local, held_local = _local(objects, clusters, ledger)
    return Queues(
        queues=tuple(queues),
        covered={name: tuple(_covered(item)) for name, item in clusters.items()},
        local=local,
        held=frozenset(name for name, item in clusters.items() if _spec(item).stop_policy in HELD),
        held_local=held_local,
        preemptible=frozenset(_preemptible(clusters, tops)),
        topologies=_topologies(clusters, flavours),
    )


# --- the tree ------------------------------------------------------------------------------------------------------


class _Tree:
    """Queues with their parents, ClusterQueues first; a Cohort that nobody describes is there too."""

    def __init__(self, clusters: Found, cohorts: Found) -> None:
        def apart(cohort: str) -> str:
            return f"{cohort} (cohort)" if cohort in clusters else cohort

        self.items: dict[str, Item[QueueObject] | None] = dict(clusters)
        self.parents: dict[str, str] = {}
        for name, item in (*clusters.items(), *((apart(n), i) for n, i in cohorts.items())):
            spec = _spec(item)
            above = spec.cohort_name or spec.cohort or spec.parent_name or spec.parent or ""
            self.items[name] = item
            self.parents[name] = apart(named(item, "spec.cohortName", above)) if above else ""
        for above in [parent for parent in self.parents.values() if parent]:
            if above not in self.parents:
                self.items[above], self.parents[above] = None, ""
        self.leaves = frozenset(clusters)

    def top(self, name: str) -> str:
        """Return the queue at the top of a queue's tree."""
        seen = {name}
        while above := self.parents[name]:
            item = self.items[above]
            if above in seen and item is not None:
                raise wrong(item, "spec.parentName", "the parents of the Cohort go round", "name another parent")
            seen.add(above)
            name = above
        return name


def _by_name(found: Iterable[Item[QueueObject]], ledger: Ledger) -> dict[str, Item[QueueObject]]:
    unique: dict[str, Item[QueueObject]] = {}
    for item in found:
        name = named(item, "metadata.name", item.value.metadata.name)
        if name in unique:
            ledger.contradiction("an object that is given twice", "the first one", item.where)
        else:
            unique[name] = item
            ledger.read("queues", item.where)
    return unique


def _spec(item: Item[QueueObject]) -> QueueSpec:
    return item.value.spec or QueueSpec()


def _covered(item: Item[QueueObject]) -> Iterator[Covered]:
    for group in _spec(item).resource_groups or ():
        named = (quota.name for flavour in group.flavors or () for quota in flavour.resources or ())
        resources = frozenset((*(group.covered_resources or ()), *named))
        yield resources, tuple(flavour.name for flavour in group.flavors or ())


# --- quotas --------------------------------------------------------------------------------------------------------


def counts_cards(resource: str) -> bool:
    """Return whether a resource is whole cards.

    Examples
    --------
    >>> counts_cards("nvidia.com/gpu"), counts_cards("nvidia.com/mig-1g.5gb"), counts_cards("cpu")
    (True, False, False)
    """
    return resource.endswith("/gpu")


def _cards(item: Item[QueueObject]) -> list[tuple[str, ResourceQuota, str]]:
    """Return flavour, quota and place of each quota of cards."""
    return [
        (flavour.name, quota, f"spec.resourceGroups[{g}].flavors[{f}].resources[{r}]")
        for g, group in enumerate(_spec(item).resource_groups or ())
        for f, flavour in enumerate(group.flavors or ())
        for r, quota in enumerate(flavour.resources or ())
        if counts_cards(quota.name)
    ]


def _kinds(
    tree: _Tree, tops: Mapping[str, str], flavours: Mapping[str, FlavorSpec]
) -> tuple[dict[str, bool], dict[str, int]]:
    """Return by tree whether all of its flavours of cards name a model, and how many there are."""
    names: dict[str, set[str]] = defaultdict(set)
    for name, item in tree.items.items():
        if item is not None:
            names[tops[name]].update(flavour for flavour, _, _ in _cards(item))
    every = {top: names.get(top, set()) for top in tops.values()}
    pinned = {top: bool(found) and all(_model(flavours, name) for name in found) for top, found in every.items()}
    return pinned, {top: len(found) for top, found in every.items()}


def _model(flavours: Mapping[str, FlavorSpec], name: str) -> str:
    """Return the card model that a flavour's node labels name; empty for none."""
    spec = flavours.get(name)
    product = (spec.node_labels or {}).get(PRODUCT, "") if spec else ""
    return product.split("-MIG-")[0].removesuffix("-SHARED")


def _queue(
    name: str,
    item: Item[QueueObject] | None,
    tree: _Tree,
    flavours: Mapping[str, FlavorSpec],
    by_model: bool,
    tree_states: bool,
    ledger: Ledger,
) -> Queue:
    parent = tree.parents[name]
    if item is None:
        return Queue(name=name, parent=parent)
    quota: dict[str, list[Fraction]] = defaultdict(list)
    borrow: dict[str, list[Fraction | None]] = defaultdict(list)
    lend: dict[str, list[Fraction | None]] = defaultdict(list)
    for flavour, given, path in _cards(item):
        model = _model(flavours, flavour) if by_model else ALL
        quota[model].append(_nominal(item, path, given))
        borrow[model].append(_limit(item, f"{path}.borrowingLimit", given.borrowing_limit, parent, ledger))
        lend[model].append(_limit(item, f"{path}.lendingLimit", given.lending_limit, parent, ledger))
    total = {model: sum(parts, Fraction(0)) for model, parts in quota.items()}
    borrowing = {model: sum(found, Fraction(0)) for model, parts in borrow.items() if (found := _all(parts))}
    lending: dict[str, Fraction] = {}
    for model, parts in lend.items():
        if any(part is not None for part in parts):
            # what has no limit may all be lent
            most = [own if part is None else part for part, own in zip(parts, quota[model], strict=True)]
            lending[model] = sum(most, Fraction(0))
            if lending[model] > total[model] and name in tree.leaves:
                ledger.contradiction("a lending limit above the quota", "the quota", item.where)
                lending[model] = total[model]
    if not total and name in tree.leaves and _grants_no_cards(item) and (tree_states or _spec(item).resource_groups):
        ledger.assumed(
            "a queue that does not cover cards", "it takes no workload with cards, as in Kueue by default", item.where
        )
        total = {ALL: Fraction(0)}
        borrowing = {ALL: Fraction(0)} if parent else {}
    return Queue(
        name=name,
        parent=parent,
        quota=_plain(total),
        borrowing_limit=_plain(borrowing),
        lending_limit=_plain(lending),
        weight=_weight(item),
    )


def _grants_no_cards(item: Item[QueueObject]) -> bool:
    """Return whether a queue covers no resource that may be a card, or part of one."""
    return not any(
        counts_cards(resource) or "/mig-" in resource or "gpu" in resource.partition("/")[2]
        for covered, _ in _covered(item)
        for resource in covered
    )


def _all(parts: list[Fraction | None]) -> list[Fraction]:
    """Return the limits if every part has one; one part without a limit has the sum none."""
    found = [part for part in parts if part is not None]
    return found if len(found) == len(parts) else []


def _limit(item: Item[QueueObject], path: str, given: Quantity | None, parent: str, ledger: Ledger) -> Fraction | None:
    if given is None:
        return None
    value = _exact(item, path, given)
    if not parent:
        ledger.contradiction(
            "a limit on lending or borrowing without a cohort", "there is nobody to lend to", item.where
        )
        return None
    return value


def _exact(item: Item[QueueObject], path: str, given: Quantity) -> Fraction:
    try:
        return units.exact(given)
    except ValueError as why:
        raise wrong(item, path, str(why), "give a Kubernetes quantity, at most 2^63 - 1") from None


def _nominal(item: Item[QueueObject], path: str, quota: ResourceQuota) -> Fraction:
    return _exact(item, f"{path}.nominalQuota", 0 if quota.nominal_quota is None else quota.nominal_quota)


def _plain(amounts: Mapping[str, Fraction]) -> dict[str, Quantity]:
    return {model: int(v) if v.denominator == 1 else f"{int(v * 1000)}m" for model, v in amounts.items()}


def _weight(item: Item[QueueObject]) -> float:
    sharing = _spec(item).fair_sharing
    if sharing is None or sharing.weight is None:
        return 1.0
    weight = float(_exact(item, "spec.fairSharing.weight", sharing.weight))
    if weight > MOST_WORTH:
        raise wrong(item, "spec.fairSharing.weight", f"found {weight:g}", f"give at most {MOST_WORTH:g}")
    return weight


# --- what else a queue says ----------------------------------------------------------------------------------------


def _note(item: Item[QueueObject], ledger: Ledger) -> None:
    """Note what a queue says and a snapshot does not."""
    spec = _spec(item)
    for g, group in enumerate(spec.resource_groups or ()):
        for f, flavour in enumerate(group.flavors or ()):
            for r, quota in enumerate(flavour.resources or ()):
                path = f"spec.resourceGroups[{g}].flavors[{f}].resources[{r}]"
                _nominal(item, path, quota)
                if not counts_cards(quota.name):
                    what, why = "a quota of a resource that is not cards", "quotas of a snapshot count cards"
                    ledger.unsupported(what, why, at(item, path))
    if spec.namespace_selector:
        ledger.ignored("a namespace selector", "workloads are taken to be in the right queue", item.where)
    if spec.queueing_strategy == "StrictFIFO":
        ledger.ignored(
            "the strategy StrictFIFO", "what starts first goes by priority and time, then by what fits", item.where
        )
    if spec.admission_checks or spec.admission_checks_strategy:
        ledger.unsupported("admission checks", "what they decide is not in the files", item.where)


def _preemptible(clusters: Found, tops: Mapping[str, str]) -> Iterator[str]:
    reclaiming = Counter(tops[name] for name, item in clusters.items() if _takes(item, "reclaim_within_cohort"))
    for name, item in clusters.items():
        others = reclaiming[tops[name]] - _takes(item, "reclaim_within_cohort")
        if others or _takes(item, "within_cluster_queue"):
            yield name


def _takes(item: Item[QueueObject], policy: str) -> bool:
    preemption = _spec(item).preemption
    return preemption is not None and (getattr(preemption, policy) or "Never") != "Never"


def _topologies(clusters: Found, flavours: Mapping[str, FlavorSpec]) -> tuple[str, ...]:
    used = [name for item in clusters.values() for _, names in _covered(item) for name in names]
    names = [flavours[name].topology_name for name in (*used, *flavours) if name in flavours]
    return tuple(dict.fromkeys(name for name in names if name))


def _local(objects: Objects, clusters: Found, ledger: Ledger) -> tuple[dict[str, str], frozenset[str]]:
    """Return the ClusterQueue of each LocalQueue, and the LocalQueues that start nothing."""
    local: dict[str, str] = {}
    held = set()
    for item in objects.of(GROUP, "LocalQueue", LocalQueue):
        key = item.value.metadata.key
        if key in local:
            ledger.contradiction("an object that is given twice", "the first one", item.where)
            continue
        spec = item.value.spec
        local[key] = (spec.cluster_queue if spec else None) or ""
        ledger.read("local queues", item.where)
        if local[key] not in clusters:
            ledger.contradiction("a LocalQueue of a ClusterQueue that is not there", "there is none", item.where)
        if spec is not None and spec.stop_policy in HELD:
            held.add(key)
    return local, frozenset(held)
