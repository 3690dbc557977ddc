"""Running pods that are being resized: they hold the larger of what they ask for and of what they have been given.

A request that has been made smaller is not free before the kubelet has taken it back. The scheduler counts the largest
of ``spec.containers[].resources.requests`` and of ``status.containerStatuses[]``'s ``allocatedResources`` and
``resources.requests``: https://kubernetes.io/docs/tasks/configure-pod-container/resize-container-resources/
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from placement.formats.kubernetes.objects import Item
from placement.formats.kubernetes.pod import Container, ContainerStatus, Pod, PodStatus, Resources
from placement.formats.kubernetes.requests import Amounts, of_container, read
from placement.formats.ledger import Ledger
from placement.units import exact


def enlarge(item: Item[Pod], ledger: Ledger) -> None:
    """Let a pod that runs ask for all that it has.

    Raises
    ------
    InputError
        If an amount is none.
    """
    spec, status = item.value.spec, item.value.status or PodStatus()
    path = f"{item.path}." if item.path else ""
    plain = _larger(item, spec.containers, status.container_statuses, f"{path}status.containerStatuses")
    first = _larger(item, spec.init_containers, status.init_container_statuses, f"{path}status.initContainerStatuses")
    if plain is None and first is None:
        return
    ledger.assumed(
        "what a pod holds that is being resized", "the larger of what it asks for and what it has", item.where
    )
    spec.containers = plain or spec.containers
    spec.init_containers = first or spec.init_containers


def _larger(
    item: Item[Pod], containers: list[Container] | None, statuses: Iterable[ContainerStatus] | None, path: str
) -> list[Container] | None:
    """Return the containers with more than they ask for; None where none has more."""
    found = {container.name: container for container in containers or ()}
    larger = False
    for index, status in enumerate(statuses or ()):
        container = found.get(status.name)
        if container is None:
            continue
        current = status.resources.requests if status.resources is not None else None
        asked = container.resources or Resources()
        for given, field in ((status.allocated_resources, "allocatedResources"), (current, "resources.requests")):
            if not given or given == asked.requests:
                continue
            has = read(given, item.file, f"{path}[{index}].{field}")
            more = _more(of_container(asked, item.file, path), has)
            if more:
                larger = True
                asked = msgspec.structs.replace(asked, requests={**(asked.requests or {}), **more})
                found[status.name] = msgspec.structs.replace(container, resources=asked)
    return [found[container.name] for container in containers or ()] if larger else None


def _more(asked: Amounts, has: Amounts) -> Amounts:
    return {name: value for name, value in has.items() if exact(value) > (exact(asked[name]) if name in asked else 0)}
