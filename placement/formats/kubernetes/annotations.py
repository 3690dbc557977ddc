"""The annotations of a pod that say what exactly it has on its node, which no field of a pod does.

.. code-block:: text

    gpu-placement.io/gpus        indices of its cards on the node: "0,1"
    gpu-placement.io/mig-starts  first memory slot of its MIG instance on each of these cards: "4";
                                 "-" on one that it has whole
    gpu-placement.io/zones       NUMA zones that its CPU, memory and NICs come from: "0"
    gpu-placement.io/cpuset      all CPUs of these zones, as cpuset.cpus takes them: "0-31,64-95"
    gpu-placement.io/nics        names of its NICs: "mlx5_0,mlx5_1"
    gpu-placement.io/devices     names of its cards, where the snapshot says them: "GPU-6f…,GPU-a0…"

One that has nothing to say is left out. They are for a device plugin, a mutating webhook or an operator to act on; the
API server itself does nothing with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

PREFIX = "gpu-placement.io"
GPUS = f"{PREFIX}/gpus"
MIG_STARTS = f"{PREFIX}/mig-starts"
ZONES = f"{PREFIX}/zones"
CPUSET = f"{PREFIX}/cpuset"
NICS = f"{PREFIX}/nics"
DEVICES = f"{PREFIX}/devices"
JOINED, GROUP = f"{PREFIX}/joined", f"{PREFIX}/group"
"""Of a Workload whose pod groups start together or not at all ("true"), which the core does not say; of a pod group the
path of the group of tasks that it is."""
WHOLE = "-"
"""Slot of a card that a pod has whole, beside instances on others."""


def of_place(
    *,
    gpus: Iterable[int] = (),
    mig_starts: Iterable[int | str] = (),
    zones: Iterable[int] = (),
    cpuset: str = "",
    nics: Iterable[str] = (),
    devices: Iterable[str] = (),
) -> dict[str, str]:
    """Return the annotations of a pod; those without a value are left out."""
    values = {
        GPUS: _joined(gpus),
        MIG_STARTS: _joined(mig_starts),
        ZONES: _joined(zones),
        CPUSET: cpuset,
        NICS: _joined(nics),
        DEVICES: _joined(devices),
    }
    return {key: text for key, text in values.items() if text}


def numbers(text: str) -> list[int] | None:
    """Return the numbers of an annotation in their order; None where it says something else."""
    parts = [part.strip() for part in text.split(",")]
    return [int(part) for part in parts] if all(re.fullmatch(r"[0-9]{1,6}", part, re.ASCII) for part in parts) else None


def _joined(parts: Iterable[Any]) -> str:
    return ",".join(map(str, parts))
