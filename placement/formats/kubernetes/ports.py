"""Ports of nodes that pods take for themselves: no two pods on a node have the same one.

The rule: https://kubernetes.io/docs/concepts/configuration/overview/#services (``hostPort``).
"""

from __future__ import annotations

from placement.formats.kubernetes.labels import Labels
from placement.formats.kubernetes.objects import Item
from placement.formats.kubernetes.pod import Pod
from placement.formats.ledger import Ledger

Port = tuple[int, str]
"""Number and protocol."""
ANY = ("", "0.0.0.0")
"""Addresses that stand for all of a node."""


class Ports:
    """Knows the ports that running pods have taken, and those that others wait for.

    Parameters
    ----------
    labels : Labels
    ledger : Ledger
    """

    def __init__(self, labels: Labels, ledger: Ledger) -> None:
        self.labels = labels
        self.ledger = ledger
        self._taken: dict[Port, dict[int, set[str]]] = {}
        self._waiting: set[Port] = set()

    def runs(self, item: Item[Pod], index: int) -> None:
        """Take the ports of a running pod."""
        for port, address in _ports(item.value):
            self._taken.setdefault(port, {}).setdefault(index, set()).add(address)

    def allowed(self, item: Item[Pod]) -> frozenset[int] | None:
        """Return the nodes on which no running pod has a port that a pending one wants; None for all."""
        wanted = _ports(item.value)
        if not wanted:
            return None
        closed = {
            index
            for port, address in wanted
            for index, others in self._taken.get(port, {}).items()
            if address in ANY or address in others or not others.isdisjoint(ANY)
        }
        if any(port in self._waiting for port, _ in wanted):
            why = "no two of them have it on a node: that holds against pods that run, not among these"
            self.ledger.unsupported("host ports that several pods wait for", why, item.where, item.file)
        self._waiting.update(port for port, _ in wanted)
        return self.labels.every - closed if closed else None


def _ports(pod: Pod) -> set[tuple[Port, str]]:
    """Return the ports of a pod with their addresses; sidecars keep theirs, plain init containers are over."""
    found: set[tuple[Port, str]] = set()
    sidecars = [one for one in pod.spec.init_containers or () if one.restart_policy == "Always"]
    for container in (*(pod.spec.containers or ()), *sidecars):
        for port in container.ports or ():
            number = port.host_port or (port.container_port if pod.spec.host_network else None)
            if number:
                found.add(((number, port.protocol or "TCP"), port.host_ip or ""))
    return found
