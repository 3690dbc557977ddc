"""Ways to share a card: what each guarantees to those who share it, how many may, and what it costs.

A guarantee is something a task can be promised whatever its neighbours do. What holds only as long as everybody behaves
is none, and nor is what no source states: a task that asks for it waits for a card that is known to give it.

- *security*: no neighbour reads its memory.
- *performance*: no neighbour slows it down.
- *fault*: no fault of a neighbour ends it.

A task that takes whole cards shares them with nobody and has all three. MIG is as near to that as sharing comes, and
still no card of its own: the PCIe bus and the power budget are shared, a reset of the whole card hits every instance,
and a timing side channel between instances has been published (``behind-bars``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Protocol

from placement import units
from placement.hardware.mig import geometry

NEEDS = ("security", "performance", "fault")
"""What a task can ask to be isolated, as `placement.snapshot.Task.isolation` names it."""

SOURCES: Mapping[str, str] = MappingProxyType(
    {
        "mps": "NVIDIA, Multi-Process Service, https://docs.nvidia.com/deploy/mps/",
        "device-plugin": "NVIDIA, k8s-device-plugin, README, https://github.com/NVIDIA/k8s-device-plugin",
        "gpu-sharing": "NVIDIA, GPU Operator, Time-Slicing GPUs in Kubernetes, "
        "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-sharing.html",
        "vgpu": "NVIDIA AI Enterprise, vGPU for Compute, Scheduling Policies, "
        "https://docs.nvidia.com/ai-enterprise/release-8/8.1/infra-software/vgpu/features/scheduling.html",
        "mps-memory": "NVIDIA, Multi-Process Service, MPS v3 Memory Partitioning, "
        "https://docs.nvidia.com/deploy/mps/latest/mpsv3-memory-partitioning.html",
        "mig": "NVIDIA, Multi-Instance GPU User Guide, https://docs.nvidia.com/datacenter/tesla/mig-user-guide/",
        "behind-bars": "Behind Bars, USENIX Security 2026: memory barriers tell MIG instances of one another's work",
        "requirements": "planning figures; no published measurement was found",
        "definition": "follows from what the mode is",
    }
)
"""Where facts come from, by key."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """Whether a mode promises something, why, and who says so (keys of `SOURCES`)."""

    holds: bool
    why: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to share a card.

    Attributes
    ----------
    name : str
        As `placement.snapshot.Gpu.sharing` has it, or ``"mig"``; after ``"vgpu"`` and a blank the scheduling policy.
    security, performance, fault : Guarantee
    sliced : bool
        Whether tasks take turns, so that every one of them waits for the others and for the switch to it.
    """

    name: str
    security: Guarantee
    performance: Guarantee
    fault: Guarantee
    sliced: bool = False

    @property
    def guaranteed(self) -> frozenset[str]:
        """What it promises."""
        return frozenset(need for need in NEEDS if getattr(self, need).holds)


_ALONE = Guarantee(True, "there is no neighbour on the card", ("definition",))
_UNKNOWN = Guarantee(False, "how the card is shared is not stated, so nothing can be promised", ("definition",))

_OWN_FRAME_BUFFER = Guarantee(True, "each virtual machine has frame buffer of its own", ("vgpu",))
_NO_SOURCE = Guarantee(False, "no source says that a fault stays within its virtual machine", ("vgpu",))


def _vgpu(policy: str, holds: bool, why: str) -> Mode:
    """Return virtual GPUs under a scheduling policy, on which depends no more than who gets which time."""
    time = Guarantee(holds, why, ("vgpu",))
    name = f"vgpu {policy}".rstrip()
    return Mode(name, security=_OWN_FRAME_BUFFER, performance=time, fault=_NO_SOURCE, sliced=True)


_MODES = (
    Mode("exclusive", security=_ALONE, performance=_ALONE, fault=_ALONE),
    Mode("shared", security=_UNKNOWN, performance=_UNKNOWN, fault=_UNKNOWN),
    Mode(
        "time_slicing",
        security=Guarantee(False, "memory is not isolated: a neighbour can take all of it", ("gpu-sharing",)),
        performance=Guarantee(False, "every process gets an equal turn, however many there are", ("device-plugin",)),
        fault=Guarantee(False, "all tasks are in one fault domain: if one crashes, all do", ("device-plugin",)),
        sliced=True,
    ),
    Mode(
        "mps",
        security=Guarantee(False, "clients of one server trust one another; it is meant for one user", ("mps",)),
        performance=Guarantee(False, "threads are capped, not reserved; cache and bandwidth are shared", ("mps",)),
        fault=Guarantee(False, "a fatal fault is reported to every client of the card, which all end", ("mps",)),
    ),
    _vgpu("", False, "the usual scheduler, best effort, reserves no time for anybody"),
    _vgpu("best_effort", False, "no time is reserved for anybody"),
    _vgpu("equal_share", False, "all that run have equal parts of the time, smaller ones with every one that starts"),
    _vgpu("fixed_share", True, "each virtual machine has a fixed part of the time, even while others are idle"),
    Mode(
        "mig",
        security=Guarantee(True, "memory slots, cache and paths to them are an instance's own", ("mig", "behind-bars")),
        performance=Guarantee(True, "processors, cache and bandwidth are too; PCIe and power are not", ("mig",)),
        fault=Guarantee(True, "an error in one instance does not reach others; a reset of the card does", ("mig",)),
    ),
)

MODES: Mapping[str, Mode] = MappingProxyType({mode.name: mode for mode in _MODES})
"""Every mode by its name."""


def mode_of(gpu: Card) -> Mode:
    """Return how a card is shared by tasks that take a share of it."""
    return MODES[f"{gpu.sharing} {gpu.vgpu_policy}".rstrip()]


def lacking(name: str, asked: Iterable[str]) -> Guarantee | None:
    """Return the first guarantee among some that a mode does not give, or None if it gives all of them."""
    mode = MODES[name]
    missing = [getattr(mode, need) for need in NEEDS if need in set(asked) - mode.guaranteed]
    return missing[0] if missing else None


# --- how many may share ---------------------------------------------------------------------------------------

MPS_CLIENTS = 48
"""Most clients of MPS on a card from Volta on. Source: ``mps``; one task is taken to be one client."""
MPS_CLIENTS_LATER, MPS_LATER = 60, "13.1"
"""The same from this version of CUDA on. Source: ``mps``."""
MPS_CLIENTS_BEFORE, VOLTA = 16, "7.0"
"""The same on cards with a compute capability below that of Volta. Source: ``mps``."""
MPS_LEAST_CAPABILITY = "3.5"
"""Compute capability without which the MPS server does not start. Source: ``mps``."""
MPS_MEMORY_LIMITS = "11.5"
"""Version of CUDA from which MPS can limit what a client allocates. Source: ``mps``.

A node with an older one is as good as any to tasks that do not ask for a `placement.snapshot.Task.gpu_memory_limit`:
those that keep to the memory they asked for fit. What is missing there is somebody who makes them, which is so of
``"shared"`` and ``"time_slicing"`` cards everywhere.
"""
MPS_MEMORY_PARTITIONS, PARTITIONS_CGROUP = "13.4", 2
"""Version of CUDA, and of the control groups, from which MPS can partition memory. Source: ``mps-memory``.

The older limits are kept in user space and count what a client allocates; partitions are kept for a control group of
the kernel and count all device memory. On MIG instances there are none. MPS of version 3 has to be chosen for them.
"""


class Card(Protocol):
    """What is read of a card here; `placement.snapshot.Gpu` is one."""

    @property
    def sharing(self) -> str:
        """First word of a key of `MODES`."""
        ...

    @property
    def vgpu_policy(self) -> str:
        """Second word of that key; empty where there is none."""
        ...

    @property
    def replicas(self) -> int | None:
        """Most tasks on it, as far as that is stated."""
        ...

    @property
    def memory(self) -> units.Quantity | None:
        """Bytes of device memory."""
        ...

    @property
    def compute_capability(self) -> str:
        """Empty where it is unknown."""
        ...

    @property
    def mig_enabled(self) -> bool:
        """Whether it is in MIG mode."""
        ...

    @property
    def model(self) -> str:
        """Name of the card model."""
        ...

    @property
    def mig_instance(self) -> str:
        """MIG profile where it is an instance and no card; empty for a card."""
        ...


def most_clients(gpu: Card, cuda: str) -> int | None:
    """Return how many tasks may be on a card at a time, or None if nothing limits that.

    Parameters
    ----------
    gpu : Card
    cuda : str
        CUDA version of the node; where it is not stated, the lower limit of MPS is taken.
    """
    if gpu.sharing == "exclusive" or gpu.mig_enabled:
        return None  # one task, or one an instance: not a matter of clients
    limits = [] if gpu.replicas is None else [gpu.replicas]
    if gpu.sharing == "mps":
        limits.append(max(1, int(_mps_clients(gpu.compute_capability, cuda) * _part(gpu))))
    return min(limits, default=None)


def _mps_clients(compute_capability: str, cuda: str) -> int:
    if compute_capability and units.version(compute_capability) < units.version(VOLTA):
        return MPS_CLIENTS_BEFORE
    return MPS_CLIENTS_LATER if cuda and units.version(cuda) >= units.version(MPS_LATER) else MPS_CLIENTS


def _part(gpu: Card) -> Fraction:
    """Return the part of its card's compute slices that a MIG instance has; 1 for a card.

    The limit on clients of MPS is lowered in proportion to it. Source: ``mig``.
    """
    there = geometry(gpu.model) if gpu.mig_instance else None
    profile = None if there is None else there.profile(gpu.mig_instance)
    return Fraction(1) if there is None or profile is None else Fraction(profile.compute, there.compute)


def memory_of_replica(gpu: Card) -> Fraction | None:
    """Return the bytes of device memory that each task on a shared card can have, or None if nothing says so.

    With MPS and N equal replicas each client is limited to one Nth of the card's memory; that the plugin rounds it down
    to MiB is left out of account, for the memory of a card is stated no more precisely. Source: ``device-plugin``.
    """
    if gpu.sharing != "mps" or gpu.replicas is None or gpu.memory is None or gpu.mig_enabled:
        return None
    return units.exact(gpu.memory) / gpu.replicas


def unlimited(gpu: Card, cuda: str, cgroup: int | None, asked: str) -> str | None:
    """Return why nobody makes tasks that share a card keep to their device memory, or None where somebody does.

    That it can be done is all that a snapshot says: with MPS it is up to whoever starts tasks to set their limits.

    Parameters
    ----------
    gpu : Card
    cuda : str
        CUDA version of the node; empty is unknown, which will not do.
    cgroup : int, optional
        Version of its control groups; None is unknown, which will not do where it matters.
    asked : str
        ``"enforced"``: what a task allocates beyond its limit fails. ``"partitioned"``: it does, and nothing that a
        task has on the card is left out of account.
    """
    if gpu.mig_enabled or gpu.sharing in ("exclusive", "vgpu"):
        return None  # an instance, a card or a frame buffer of its own
    if gpu.sharing != "mps":
        return f"sharing {gpu.sharing!r} does not limit it"
    least = MPS_MEMORY_LIMITS if asked == "enforced" else MPS_MEMORY_PARTITIONS
    if not cuda or units.version(cuda) < units.version(least):
        done = "limits what a client allocates" if asked == "enforced" else "partitions memory"
        return f"MPS {done} from CUDA {least} on, which the node is not known to have"
    if asked == "partitioned" and gpu.mig_instance:
        return "MPS does not partition the memory of a MIG instance"
    if asked == "partitioned" and cgroup != PARTITIONS_CGROUP:
        return f"MPS partitions memory by cgroup {PARTITIONS_CGROUP}, which the node is not known to have"
    return None


# --- what it costs --------------------------------------------------------------------------------------------

SWITCH_SECONDS = (Fraction(50, 10**6), Fraction(200, 10**6))
"""What switching from one task to the next takes, from and to. Source: ``requirements``.

It is told for people; it is part of `SCHEDULING` and not counted a second time.
"""
MEMORY_MANAGEMENT = Fraction(4, 100)
"""Part of the run time that managing memory costs where tasks take turns; 3 to 5 %. Source: ``requirements``."""
SCHEDULING, SCHEDULING_TENANTS = Fraction(15, 100), 8
"""Part of the run time that taking turns costs with so many tasks on a card, and more. Source: ``requirements``."""


def slowdown(gpu: Card) -> Fraction:
    """Return the usual factor on the run time of a task that takes a share of a card.

    It is that of a card with as many tasks as may be on it, for who else will be there is not known beforehand: the
    cost of taking turns grows evenly from none with one task to `SCHEDULING` with `SCHEDULING_TENANTS`, and no further.
    Where tasks do not take turns, or it is not known how they share, the factor is 1.

    Examples
    --------
    >>> from placement.snapshot import Gpu
    >>> slowdown(Gpu(model="T4", sharing="time_slicing")), slowdown(Gpu(model="T4"))
    (Fraction(119, 100), Fraction(1, 1))
    """
    if gpu.mig_enabled:
        return Fraction(1)
    return slowed(gpu, SCHEDULING_TENANTS if gpu.replicas is None else gpu.replicas)


def slowed(gpu: Card, tenants: int) -> Fraction:
    """Return the usual factor on the run time of a task on a card that is shared with so many tasks in all.

    Where each has a fixed part of the time nobody gains by others' not being there, so it is as if all were.
    """
    if not MODES[gpu.sharing].sliced:
        return Fraction(1)
    if gpu.vgpu_policy == "fixed_share":
        tenants = SCHEDULING_TENANTS if gpu.replicas is None else gpu.replicas
    return 1 + MEMORY_MANAGEMENT + SCHEDULING * (min(tenants, SCHEDULING_TENANTS) - 1) / (SCHEDULING_TENANTS - 1)
