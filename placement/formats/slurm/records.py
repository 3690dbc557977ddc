"""Records of Slurm's JSON, in the form of any version: names that changed stand side by side.

Names are those of ``src/plugins/data_parser`` (v0.0.39 to v0.0.46) and ``src/plugins/openapi/v0.0.37``. Fields that
are not listed are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from placement.formats.slurm.numbers import Field, Number

Texts = list[str] | str | None
"""A list, or its items in one text with commas between them."""


def texts(found: Texts) -> tuple[str, ...]:
    """Return the items of a list that may be one text."""
    listed = found.split(",") if isinstance(found, str) else found or ()
    return tuple(text.strip() for text in listed if text.strip() not in ("", "(null)"))


class NodeRecord(msgspec.Struct, gc=False):
    """A node; memory in MiB."""

    name: str = ""
    hostname: str | None = None
    state: Texts = None
    state_flags: Texts = None
    gres: str | None = None
    gres_used: str | None = None
    gres_drained: str | None = None
    cpus: Field = None
    effective_cpus: Field = None
    sockets: Field = None
    cores: Field = None
    threads: Field = None
    real_memory: Field = None
    specialized_memory: Field = None
    alloc_memory: Field = None
    alloc_cpus: Field = None
    weight: Field = None
    features: Texts = None
    active_features: Texts = None
    partitions: Texts = None
    reservation: str | None = None
    owner: str | int | Number | None = None
    mcs_label: str | None = None
    tres_used: str | None = None


class Amounts(msgspec.Struct, gc=False):
    """How much of something a job has on a node."""

    count: Field = None
    used: Field = None
    allocated: Field = None


class Share(msgspec.Struct, gc=False):
    """What a job has on one node; the names of v0.0.41 and of those before it."""

    name: str = ""
    nodename: str = ""
    cpus: int | Amounts | None = None
    cpus_used: Field = None
    memory: int | Amounts | None = None
    memory_allocated: Field = None


class Shares(msgspec.Struct, gc=False):
    """What a job has, node by node."""

    hosts: str | None = msgspec.field(default=None, name="list")
    whole: bool | None = None
    allocation: list[Share] | None = None


class JobResources(msgspec.Struct, gc=False):
    """What a job has."""

    nodes: str | Shares | None = None
    allocated_nodes: list[Share] | dict[str, Share] | None = None

    @property
    def shares(self) -> list[Share]:
        """What it has on each node, whichever version says it."""
        if isinstance(self.nodes, Shares):
            return self.nodes.allocation or []
        if isinstance(self.allocated_nodes, dict):
            numbered = all(key.isascii() and key.isdigit() and len(key) < 8 for key in self.allocated_nodes)
            return [self.allocated_nodes[key] for key in sorted(self.allocated_nodes, key=int if numbered else str)]
        return self.allocated_nodes or []


class JobRecord(msgspec.Struct, gc=False):
    """A job, a task of an array, or the tasks of an array that wait; memory in MiB, limits in minutes."""

    job_id: Field = None
    array_job_id: Field = None
    array_task_id: Field = None
    array_task_string: str | None = None
    array_max_tasks: Field = None
    het_job_id: Field = None
    het_job_offset: Field = None
    job_state: Texts = None
    state_reason: str | None = None
    hold: bool | None = None
    account: str | None = None
    partition: str | None = None
    priority: Field = None
    resv_name: str | None = None
    nodes: str | None = None
    gres_detail: list[str | None] | None = None
    job_resources: JobResources | None = None
    tres_per_job: str | None = None
    tres_per_node: str | None = None
    tres_per_socket: str | None = None
    tres_per_task: str | None = None
    tres_req_str: str | None = None
    tres_alloc_str: str | None = None
    cpus_per_tres: str | None = None
    memory_per_tres: str | None = None
    cpus: Field = None
    node_count: Field = None
    max_nodes: Field = None
    tasks: Field = None
    cpus_per_task: Field = None
    tasks_per_node: Field = None
    sockets_per_node: Field = None
    minimum_cpus_per_node: Field = None
    memory_per_cpu: Field = None
    memory_per_node: Field = None
    threads_per_core: Field = None
    minimum_tmp_disk_per_node: Field = None
    required_nodes: Texts = None
    excluded_nodes: Texts = None
    features: str | None = None
    prefer: str | None = None
    required_switches: Field = None
    minimum_switches: Field = None
    segment_size: Field = None
    contiguous: bool | None = None
    licenses: str | None = None
    burst_buffer: str | None = None
    cluster_features: str | None = None
    network: str | None = None
    cores_per_socket: Field = None
    shared: Texts | int = None
    exclusive: Texts | bool | int = None
    dependency: str | None = None
    submit_time: Field = None
    eligible_time: Field = None
    start_time: Field = None
    deadline: Field = None
    time_limit: Field = None
    restart_cnt: Field = None
    flags: Texts = None


class _State(msgspec.Struct, gc=False):
    state: Texts = None


class _Configured(msgspec.Struct, gc=False):
    configured: str | None = None


class _Maximums(msgspec.Struct, gc=False):
    nodes: Field = None
    shares: Field = None


class PartitionRecord(msgspec.Struct, gc=False):
    """A partition."""

    name: str = ""
    nodes: str | _Configured | None = None
    partition: _State | None = None
    state: Texts = None
    maximums: _Maximums | None = None

    @property
    def hosts(self) -> str:
        """Its nodes, as a list of hosts."""
        return (self.nodes.configured if isinstance(self.nodes, _Configured) else self.nodes) or ""

    @property
    def states(self) -> tuple[str, ...]:
        """Its states, in capitals."""
        found = self.partition.state if self.partition is not None else self.state
        return tuple(text.upper() for text in texts(found))


class ReservationRecord(msgspec.Struct, gc=False):
    """A reservation."""

    name: str = ""
    node_list: str | None = None
    start_time: Field = None
    end_time: Field = None
    flags: Texts = None
    core_count: Field = None


class _Hosts(msgspec.Struct, gc=False):
    nodes: Texts = None
    hostnames: Texts = None


class _Range(msgspec.Struct, gc=False):
    minimum: Field = None
    maximum: Field = None
    allocated: Field = None
    total: Field = None


class _Texts(msgspec.Struct, gc=False):
    total: Texts = None
    used: Texts = None
    active: Texts = None


class SinfoRecord(msgspec.Struct, gc=False):
    """Like nodes of one partition, as ``sinfo --json`` prints them since v0.0.39."""

    node: _State | None = None
    nodes: _Hosts | None = None
    cpus: _Range | None = None
    sockets: _Range | None = None
    cores: _Range | None = None
    threads: _Range | None = None
    memory: _Range | None = None
    features: _Texts | None = None
    gres: _Texts | None = None
    reservation: str | None = None
    partition: PartitionRecord | None = None

    def records(self) -> Iterator[NodeRecord]:
        """Yield a record for each node; of a range the least counts, and of what is in use the most."""
        hosts = self.nodes if self.nodes is not None else _Hosts()
        names = hosts.nodes or hosts.hostnames or []
        gres, features = self.gres or _Texts(), self.features or _Texts()
        cpus, memory = self.cpus or _Range(), self.memory or _Range()
        for name in [names] if isinstance(names, str) else names:
            yield NodeRecord(
                name=name,
                state=None if self.node is None else self.node.state,
                gres=_joined(gres.total),
                gres_used=_joined(gres.used),
                cpus=cpus.minimum,
                sockets=None if self.sockets is None else self.sockets.minimum,
                cores=None if self.cores is None else self.cores.minimum,
                threads=None if self.threads is None else self.threads.minimum,
                real_memory=memory.minimum,
                alloc_memory=memory.allocated,
                # of several nodes this is the sum, and which of them has how much is not said: each has all of it
                alloc_cpus=cpus.allocated,
                features=features.total,
                active_features=features.active,
                partitions=None if self.partition is None or not self.partition.name else [self.partition.name],
                reservation=self.reservation,
            )


def _joined(found: Texts) -> str | None:
    return ",".join(found) if isinstance(found, list) else found
