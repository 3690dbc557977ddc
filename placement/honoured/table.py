"""Which rule honours which field of a snapshot.

A rule that starts to honour a field writes its name here, and from then on the field is accepted. Fields that stand
for a set of records (``nodes.zones``) may have one line for all that is in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

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
        "policy.shares": "queue_shares",
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
        "policy.shares": frozenset({"quota"}),
    }
)
"""Values that are honoured, of fields of which not every value is."""

SHARED = ("jobs.queue", "queues")
"""Fields that count in plans (`placement.solve`) too, but not in other decisions; see `refuse_unhonoured_in_plan`."""

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

TIMED = "schedule"
"""Stands for all fields that count in a schedule and are refused in a plan."""


def timed() -> tuple[str, ...]:
    """Return the fields that count in a schedule and are refused in a plan."""
    return tuple(path for path in IN_TIME if path in removable())


def every(without: Sequence[str]) -> tuple[str, ...]:
    """Return fields to be left out, with `TIMED` as all those that it stands for."""
    return tuple(dict.fromkeys(part for path in without for part in (timed() if path == TIMED else (path,))))


def removable() -> tuple[str, ...]:
    """Return the fields that `without` may name: those of which something is not honoured."""
    return tuple(path for path, rule in RULES.items() if rule is None or path in ONLY)
