"""Which rule honours which field of a snapshot; a field that none honours yet is refused, never ignored.

The table says of every field which rule looks at it. A rule that starts to honour a field writes its name here, and
from then on the field is accepted. Fields that stand for a set of records (``nodes.zones``) may have one line for
all that is in them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain
from operator import attrgetter, is_not, ne
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from placement.errors import Problem, UnhonouredError, UsageError
from placement.snapshot import Snapshot
from placement.snapshot.read import remember
from placement.snapshot.report import names, nearest, show
from placement.snapshot.structure import hints_of, records_of

RULES: Mapping[str, str | None] = MappingProxyType(
    {
        # for people, and for telling things apart
        "description": "text",
        "source": "text",
        "licence": "text",
        "time": "identity",
        "topology": "limits, topology, affinity, tenants",
        # the cluster
        "nodes.name": "identity",
        "nodes.count": "identity",
        "nodes.position": "limits, topology, affinity, tenants",
        "nodes.labels": "node_selector",
        "nodes.taints.key": "taints",
        "nodes.taints.value": "taints",
        "nodes.taints.effect": "taints",
        "nodes.cordoned": "cordon",
        "nodes.cpu": "capacity",
        "nodes.memory": "capacity",
        "nodes.pods": "capacity",
        "nodes.extended": "capacity",
        "nodes.driver": "software",
        "nodes.cuda": "software, clients, memory_limit",
        "nodes.cgroup": "memory_limit",
        "nodes.failure_rate": None,
        "nodes.gpus.model": "gpu_models",
        "nodes.gpus.count": "shares",
        "nodes.gpus.memory": "device_memory",
        "nodes.gpus.compute_capability": "compute_capability",
        "nodes.gpus.health": "health",
        "nodes.gpus.sharing": "sharing, isolation, replica_memory, memory_limit, clients, run_time",
        "nodes.gpus.vgpu_policy": "isolation",
        "nodes.gpus.replicas": "clients, replica_memory, run_time",
        "nodes.gpus.mig_enabled": "mig",
        "nodes.gpus.mig_layout.profile": "mig",
        "nodes.gpus.mig_layout.start": "mig",
        "nodes.gpus.mig_static": "mig",
        "nodes.gpus.mig_switchable": "mig",
        "nodes.gpus.mig_instance": "mig_instance, clients, memory_limit",
        "nodes.zones.id": "numa",
        "nodes.zones.cpus": "numa",
        "nodes.zones.cpu": "numa",
        "nodes.zones.memory": "numa",
        "nodes.zones.gpus": "numa",
        "nodes.zones.nics.name": "nics",
        "nodes.zones.nics.rail": "nics",
        "nodes.zones.switches.name": "identity",
        "nodes.zones.switches.gpus": "nics",
        "nodes.zones.switches.nics": "nics",
        "nodes.links.a": "links",
        "nodes.links.b": "links",
        "nodes.links.kind": "links",
        "nodes.links.width": "links",
        "nodes.nvlink_domain": "limits, topology, affinity, tenants",
        "nodes.devices": "text",
        "limits.level": "limits",
        "limits.domain": "limits",
        "limits.gpus": "limits",
        "limits.cpu": "limits",
        "limits.memory": "limits",
        "limits.extended": "limits",
        "reservations": None,
        # the work
        "jobs.name": "identity",
        "jobs.count": "identity",
        "jobs.queue": None,
        "jobs.tenant": "tenants",
        "jobs.priority": "value",
        "jobs.weight": "value",
        "jobs.value": "value",
        "jobs.submit_time": "arrival",
        "jobs.duration.seconds": "run_time",
        "jobs.duration.gpu_models": "run_time",
        "jobs.duration.levels": "run_time",
        "jobs.duration.numa_misaligned": "run_time",
        "jobs.duration.nic_misaligned": "run_time",
        "jobs.duration.shared": "run_time",
        "jobs.duration.workload": "run_time",
        "jobs.duration.scaling": None,
        "jobs.checkpoint_interval": "running",
        "jobs.restart_seconds": "running",
        "jobs.preemptible": "running",
        "jobs.minimum_run_seconds": "running",
        "jobs.deadline": None,
        "jobs.hard_deadline": None,
        "jobs.after": None,
        "jobs.requires.driver": "software",
        "jobs.requires.cuda": "software",
        "jobs.requires.compute_capability": "compute_capability",
        "jobs.groups.name": "identity",
        "jobs.groups.count": "gang",
        "jobs.groups.min_count": "gang",
        "jobs.groups.task.gpus": "shares",
        "jobs.groups.task.gpu_share": "shares",
        "jobs.groups.task.mig_profile": "mig",
        "jobs.groups.task.mig_instance": "mig_instance",
        "jobs.groups.task.gpu_memory": "device_memory",
        "jobs.groups.task.gpu_memory_limit": "memory_limit",
        "jobs.groups.task.cpu": "capacity",
        "jobs.groups.task.memory": "capacity",
        "jobs.groups.task.nics": "nics",
        "jobs.groups.task.extended": "capacity",
        "jobs.groups.task.gpu_models": "gpu_models",
        "jobs.groups.task.node_selector": "node_selector",
        "jobs.groups.task.tolerations.key": "taints",
        "jobs.groups.task.tolerations.operator": "taints",
        "jobs.groups.task.tolerations.value": "taints",
        "jobs.groups.task.tolerations.effect": "taints",
        "jobs.groups.task.numa": "numa",
        "jobs.groups.task.isolation": "isolation",
        "jobs.groups.groups": "gang",
        "jobs.groups.min_groups": "gang",
        "jobs.groups.topology.required": "topology",
        "jobs.groups.topology.preferred": "topology",
        "jobs.groups.topology.slices.level": "topology",
        "jobs.groups.topology.slices.sizes": "topology",
        "jobs.groups.topology.balanced": "topology",
        "jobs.groups.topology.spread.level": "topology",
        "jobs.groups.topology.spread.max_per_domain": "topology",
        "jobs.groups.topology.spread.min_domains": "topology",
        "jobs.affinity.a": "affinity",
        "jobs.affinity.b": "affinity",
        "jobs.affinity.level": "affinity",
        "jobs.affinity.kind": "affinity",
        "jobs.data.level": "run_time",
        "jobs.data.domain": "run_time",
        "jobs.data.fetch_seconds": "run_time",
        "jobs.task_names": "text",
        "jobs.claims": "text",
        "jobs.running.tasks.group": "running",
        "jobs.running.tasks.index": "running",
        "jobs.running.tasks.node": "running",
        "jobs.running.tasks.gpus": "running",
        "jobs.running.tasks.zone": "running",
        "jobs.running.tasks.nics": "running",
        "jobs.running.tasks.mig_starts": "mig",
        "jobs.running.since": "running",
        "jobs.running.work_done": "running",
        "jobs.running.last_checkpoint": "running",
        "jobs.running.restarts": "running",
        # what to aim for
        "queues": None,
        "policy.objectives": "objectives",
        "policy.max_moves": None,
        "policy.max_preemptions": None,
        "policy.max_wait_seconds": None,
        "policy.tenants_apart": "tenants",
        # where it comes from
        "ledger.kind": "text",
        "ledger.what": "text",
        "ledger.why": "text",
        "ledger.where": "text",
        "ledger.count": "text",
    }
)
"""Rules that honour a field, or None; ``"identity"`` for names and counts, ``"text"`` for what people read."""

ONLY: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "policy.objectives": frozenset(
            {"value", "tasks", "locality", "run_time", "fragmentation", "whole_nodes", "nodes", "mig_cards"}
        ),
    }
)
"""Values that are honoured, of fields of which not every value is."""

IN_TIME: Mapping[str, str] = MappingProxyType(
    {
        "reservations": "windows",
        "jobs.queue": "quota",
        "jobs.duration.scaling": "run_time",
        "jobs.checkpoint_interval": "preemption",
        "jobs.restart_seconds": "preemption",
        "jobs.preemptible": "preemption",
        "jobs.minimum_run_seconds": "preemption",
        "jobs.deadline": "deadline",
        "jobs.hard_deadline": "deadline",
        "jobs.after": "order",
        "jobs.running.since": "preemption",
        "jobs.running.work_done": "preemption",
        "jobs.running.last_checkpoint": "preemption",
        "jobs.running.restarts": "preemption",
        "queues": "quota",
        "policy.objectives": "completion_time",
        "policy.max_preemptions": "preemption",
        "policy.max_wait_seconds": "aging",
    }
)
"""Fields that count in a schedule, and the rule that honours them there; see `placement.schedule`.

What stopping a job would cost makes no difference to a plan, under which running work stays where it is; what else is
here is refused there.
"""

Record = TypeVar("Record", bound=msgspec.Struct)


def unhonoured(snapshot: Snapshot, without: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the fields that a snapshot uses and plans do not honour, beside those left out anyway."""
    return tuple(_uses(snapshot, frozenset(every(without))))


def every(without: Sequence[str]) -> tuple[str, ...]:
    """Return fields to be left out, with `TIMED` as all those that it stands for."""
    return tuple(dict.fromkeys(part for path in without for part in (timed() if path == TIMED else (path,))))


def _uses(snapshot: Snapshot, without: frozenset[str]) -> dict[str, _Use]:
    """Return the uses of fields that no rule honours, in the order of the table."""
    spec = _spec(Snapshot)
    uses: dict[str, _Use] = {}
    if not _nothing_refused([snapshot], spec):
        _look(snapshot, spec, (), without, uses)
    order = list(RULES)
    return {path: uses[path] for path in sorted(uses, key=order.index)}


TIMED = "schedule"
"""Stands for all fields that count in a schedule and are refused in a plan."""


def timed() -> tuple[str, ...]:
    """Return the fields that count in a schedule and are refused in a plan."""
    return tuple(path for path in IN_TIME if path in removable())


def timeless(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot without what counts in a schedule alone."""
    reduced = _reset(snapshot, _spec(Snapshot), frozenset(IN_TIME), {})
    if reduced is not snapshot:
        remember(reduced)
    return reduced


def refuse_unhonoured_in_time(snapshot: Snapshot, without: Sequence[str] = ()) -> Snapshot:
    """Return the snapshot when a schedule honours every field it uses; see `refuse_unhonoured`.

    Raises
    ------
    UnhonouredError
        If a field is used that no rule honours.
    UsageError
        If `without` names a field that is honoured or does not exist.
    """
    _refuse_names(without, frozenset(IN_TIME))
    refuse_unhonoured(timeless(snapshot), without)
    reduced = _reset(snapshot, _spec(Snapshot), frozenset(without), {})
    if reduced is not snapshot:
        remember(reduced)
    return reduced


def removable() -> tuple[str, ...]:
    """Return the fields that `without` may name: those of which something is not honoured."""
    return tuple(path for path, rule in RULES.items() if rule is None or path in ONLY)


def refuse_unhonoured(snapshot: Snapshot, without: Sequence[str] = ()) -> Snapshot:
    """Return the snapshot when every field it uses is honoured; refuse it otherwise.

    Parameters
    ----------
    snapshot : Snapshot
        A verified one.
    without : sequence of str
        Fields to solve as if they were absent, such as ``"queues"``; only such as are not honoured. ``"schedule"``
        stands for all that count in a schedule alone.

    Returns
    -------
    Snapshot
        With the fields `without` names at their defaults.

    Raises
    ------
    UnhonouredError
        If a field is used that no rule honours; each such field is named once.
    UsageError
        If `without` names a field that is honoured or does not exist.
    """
    without = every(without)
    _refuse_names(without)
    uses = _uses(snapshot, frozenset(without))
    if uses:
        raise UnhonouredError([_problem(path, use) for path, use in uses.items()])
    if not without:
        return snapshot
    reduced = _reset(snapshot, _spec(Snapshot), frozenset(without), {})
    if reduced is not snapshot:
        remember(reduced)
    return reduced


def _refuse_names(without: Iterable[str], honoured: frozenset[str] = frozenset()) -> None:
    possible = tuple(path for path in removable() if path not in honoured)
    problems = []
    for path in without:
        if path in IN_TIME and path not in honoured:
            # also one that makes no difference to a plan
            continue
        if path in RULES and path not in possible:
            rule = RULES[path] or IN_TIME[path]
            what = f"{path} is honoured ({rule}), so leaving it out would change the problem"
            problems.append(Problem("without", what, "name fields that no rule honours"))
        elif inside := {below: rule for below, rule in RULES.items() if below.startswith(f"{path}.")}:
            problems.append(_record_named(path, inside))
        elif path not in possible:
            what = f"there is no field {show(path)} that no rule honours"
            similar = nearest(path, possible)
            problems.append(Problem("without", what, f"did you mean {show(similar)}?" if similar else "see the list"))
    if problems:
        raise UsageError([*problems, Problem("without", f"possible are {', '.join(possible)}", "")])


def _record_named(path: str, inside: Mapping[str, str | None]) -> Problem:
    """Return why a record cannot be left out of which some fields, or all, are honoured."""
    possible = [below for below in inside if below in removable()]
    rules = ", ".join(dict.fromkeys(rule for rules in inside.values() if rules for rule in rules.split(", ")))
    if not possible:
        what = f"{path} is honoured ({rules}), so leaving it out would change the problem"
        return Problem("without", what, "name fields that no rule honours")
    what = f"of {path} some is honoured ({rules}), so leaving all of it out would change the problem"
    few = len(possible) <= 6
    return Problem(
        "without", what, f"name {' or '.join(possible)}" if few else "name fields in it that no rule honours"
    )


# --- the table as a tree of records --------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Spec:
    """What to look at in one kind of record.

    Attributes
    ----------
    refused : tuple of (str, str, object)
        Name, path and default of the fields that no rule honours.
    partly : tuple of (str, str, frozenset)
        Name, path and honoured values of fields of which some values are.
    below : tuple of (str, _Spec)
        Fields that hold records worth looking at.
    """

    refused: tuple[tuple[str, str, Any], ...] = ()
    partly: tuple[tuple[str, str, frozenset[str]], ...] = ()
    below: tuple[tuple[str, _Spec], ...] = ()
    get: Callable[[Any], Any] = field(default=lambda _: None)
    absent: Any = None


@cache
def _spec(record: Any, prefix: str = "") -> _Spec:
    return _build(record, prefix, {})


def _build(record: type[msgspec.Struct], prefix: str, above: dict[type, _Spec]) -> _Spec:
    spec = _Spec()
    within = {**above, record: spec}
    refused, partly, below = [], [], []
    for info in msgspec.structs.fields(record):
        path = prefix + info.name
        records = records_of(hints_of(record)[info.name])
        if path in ONLY:
            partly.append((info.name, path, ONLY[path]))
        elif RULES.get(path, "") is None:
            default = info.default if info.default_factory is msgspec.NODEFAULT else info.default_factory()
            refused.append((info.name, path, default))
        elif records:
            part = records[0]
            below.append((info.name, within[part] if part in within else _build(part, f"{path}.", within)))
    spec.refused, spec.partly = tuple(refused), tuple(partly)
    spec.below = tuple(
        (name, part) for name, part in below if part is spec or part.refused or part.partly or part.below
    )
    if refused:
        spec.get = attrgetter(*(name for name, _, _ in refused))
        defaults = tuple(default for _, _, default in refused)
        spec.absent = defaults if len(defaults) > 1 else defaults[0]
    return spec


# --- looking -------------------------------------------------------------------------------------------------


def _nothing_refused(records: Collection[Any], spec: _Spec) -> bool:
    """Return whether no record of one kind uses anything that is not honoured; a quick look at all of them at once."""
    if any(map(partial(ne, spec.absent), map(spec.get, records))):
        return False
    for name, _, honoured in spec.partly:
        if any(option not in honoured for value in set(map(attrgetter(name), records)) for _, option in _values(value)):
            return False
    for name, part in spec.below:
        inside: list[Any] = list(filter(None, map(attrgetter(name), records)))
        if inside and isinstance(inside[0], tuple):
            # records that were read share equal lists, so that few of them are different objects
            inside = list(chain.from_iterable(dict(zip(map(id, inside), inside, strict=True)).values()))
        if inside and not _nothing_refused(inside, part):
            return False
    return True


_Where = tuple[Any, ...]
"""Way to a value, as (way to the record it is in, name, index); made into text only where something is wrong."""


@dataclass(slots=True)
class _Use:
    """Uses of a field that is not honoured: where the first one is, which values, how many."""

    first: str
    values: dict[str, None] = field(default_factory=dict)
    count: int = 0


def _look(value: Any, spec: _Spec, where: _Where, without: frozenset[str], uses: dict[str, _Use]) -> None:
    if spec.get(value) != spec.absent:
        for name, path, default in spec.refused:
            if path not in without and getattr(value, name) != default:
                _note(uses, path, where, name)
    for name, path, honoured in spec.partly:
        if path not in without:
            for index, option in _values(getattr(value, name)):
                if option not in honoured:
                    _note(uses, path, where, name, index).values[option] = None
    for name, part in spec.below:
        inside = getattr(value, name)
        if isinstance(inside, tuple):
            for index, item in enumerate(inside):
                _look(item, part, (where, name, index), without, uses)
        elif inside is not None:
            _look(inside, part, (where, name, None), without, uses)


def _values(value: str | tuple[str, ...]) -> Iterator[tuple[int | None, str]]:
    if isinstance(value, str):
        yield None, value
    else:
        yield from enumerate(value)


def _note(uses: dict[str, _Use], path: str, where: _Where, name: str, index: int | None = None) -> _Use:
    if path not in uses:
        uses[path] = _Use(_path((where, name, index)))
    uses[path].count += 1
    return uses[path]


def _path(where: _Where) -> str:
    if not where:
        return ""
    above, name, index = where
    start = _path(above)
    return f"{start}.{name}"[0 if start else 1 :] + ("" if index is None else f"[{index}]")


def _problem(path: str, use: _Use) -> Problem:
    what = f"no rule honours {path} yet"
    if path in ONLY:
        what = f"no rule honours {path} {names(use.values)} yet (it does {names(sorted(ONLY[path]))})"
    more = f", which is used {use.count} times" if use.count > 1 else ""
    if path in IN_TIME:
        remedy = f"plan over time with placement schedule, or solve with --without schedule or --without {path}"
        return Problem(use.first, what + more, remedy)
    return Problem(use.first, what + more, f"remove it, or solve as if it were absent with --without {path}")


# --- leaving out ---------------------------------------------------------------------------------------------


def _reset(value: Record, spec: _Spec, without: frozenset[str], known: dict[tuple[int, int], Any]) -> Record:
    """Return an equal record but for the fields `without` names; the same one where nothing changes.

    `known` remembers lists by identity, so that what records shared they still share.
    """
    changed: dict[str, Any] = {name: default for name, path, default in spec.refused if path in without}
    changed = {name: default for name, default in changed.items() if getattr(value, name) != default}
    for name, path, honoured in spec.partly:
        if path in without and any(option not in honoured for _, option in _values(getattr(value, name))):
            changed[name] = _kept(value, name, honoured)
    for name, part in spec.below:
        inside = getattr(value, name)
        if isinstance(inside, tuple):
            key = id(inside), id(part)
            if key not in known:
                items = tuple(_reset(item, part, without, known) for item in inside)
                known[key] = items if any(map(is_not, items, inside)) else inside
            if known[key] is not inside:
                changed[name] = known[key]
        elif inside is not None and (item := _reset(inside, part, without, known)) is not inside:
            changed[name] = item
    return msgspec.structs.replace(value, **changed) if changed else value


def _kept(value: msgspec.Struct, name: str, honoured: frozenset[str]) -> Any:
    """Return what is left of a field without the values that are not honoured: its default where nothing is."""
    default = next(info.default for info in msgspec.structs.fields(value) if info.name == name)
    given = getattr(value, name)
    if isinstance(given, str):
        return default
    return tuple(option for option in given if option in honoured) or default
