"""Tenants that are kept apart: which tasks that matters to, and whose domains and cards are already."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from operator import attrgetter
from typing import TypeVar

import numpy as np

from placement.compile.free import Free
from placement.compile.running import places
from placement.compile.work import Work
from placement.index import numbered
from placement.instance import Ints, Shape
from placement.snapshot import Job, Snapshot
from placement.tenants import FREE, SHUT, Apart

CARD = "gpu"
"""The level of single cards."""

Key = TypeVar("Key", bound=Hashable)


class Tenants:
    """Whose work is where, as far as it matters.

    It does not where all jobs are one tenant's. Between cards it only does to tasks that others could share a card
    with: not to those that take whole ones or none.

    Parameters
    ----------
    snapshot : Snapshot
    work : Work
    levels : tuple of str
        All levels of domains.
    domain : int array (levels, N)
        Of each node.
    card_units : int
        Units of a whole card.
    """

    def __init__(self, snapshot: Snapshot, work: Work, levels: tuple[str, ...], domain: Ints, card_units: int) -> None:
        level = snapshot.policy.tenants_apart
        names = tuple(sorted(set(map(attrgetter("tenant"), snapshot.jobs)))) if level else ()
        self._number = {name: number for number, name in enumerate(names if len(names) > 1 else ())}
        self._by_card = level == CARD
        self._card_units = card_units
        self._nodes = domain.shape[1]
        self._running: list[tuple[int, int, tuple[int, ...]]] = []
        self._of_card: dict[tuple[int, int], int] = {}
        self._domain = np.arange(self._nodes)
        if not self._number:
            return
        whose = [job.tenant for job in snapshot.jobs if job.running is not None for _ in job.running.tasks]
        self._running = [
            (node, self._number[name], place.gpus)
            for name, (node, _, place) in zip(whose, places(snapshot, work), strict=True)
        ]
        if not self._by_card:
            there = domain[levels.index(level)]
            # a node in no domain is one by itself
            self._domain = np.where(there >= 0, there, there.max(initial=-1) + 1 + self._domain)
        self._of_card = _owners(((node, card), tenant) for node, tenant, gpus in self._running for card in gpus)

    def marked(self, shape: Shape, job: Job) -> Shape:
        """Return a job's shape with its tenant, where that matters."""
        alone = shape.profile < 0 and (not shape.gpus or shape.units >= self._card_units)
        if not self._number or (self._by_card and alone):
            return shape
        return replace(shape, tenant=self._number[job.tenant])

    def on_cards(self, used: Ints) -> Iterator[tuple[int, int, int]]:
        """Yield row, device index and owner of the cards on some nodes that are somebody's; see `free`."""
        row_of = {node: row for row, node in enumerate(used.tolist())} if self._by_card else {}
        for (node, device), owner in self._of_card.items() if self._by_card else ():
            yield row_of[node], device, owner

    def apart(self, free: Free, used: Ints, widest: int) -> Apart:
        """Return whose everything is, MIG cards aside, where that matters to some task.

        Parameters
        ----------
        free : Free
            The last rows are those of the nodes with running work.
        used : int array (B,)
            These nodes.
        widest : int
            Most cards in a node.
        """
        names = tuple(self._number)
        if not self._by_card:
            owner = np.full(int(self._domain.max(initial=-1)) + 1, FREE, dtype=np.int64)
            found = _owners((int(self._domain[node]), tenant) for node, tenant, _ in self._running)
            owner[list(found)] = list(found.values())
            return Apart(names, self._domain, owner)
        owner = np.full((self._nodes, widest), FREE, dtype=np.int64)
        first = len(free.alike) - len(used)
        for row, node in enumerate(used.tolist(), first):
            cards = zip(free.devices_of(row), free.cards_of(row), strict=True)
            for position, (device, (_, units, _)) in enumerate(cards):
                if units:
                    owner[node, position] = self._of_card.get((node, device), FREE)
        return Apart(names, self._domain, owner)

    def looks(self, apart: Apart | None) -> Ints:
        """Return a number for each node, equal where nodes are owned alike."""
        if apart is None:
            return np.zeros(self._nodes, dtype=np.int64)
        if not self._by_card:
            return apart.owner[apart.domain]
        look = np.zeros(self._nodes, dtype=np.int64)
        some = np.flatnonzero((apart.owner != FREE).any(axis=1))
        look[some] = 1 + numbered(map(tuple, apart.owner[some].tolist()))[0]
        return look

    def of_cards(self, host: Ints, device: Ints) -> Ints:
        """Return whose MIG cards are; nobody's where tenants are not kept apart by card."""
        owner = np.full(len(host), FREE, dtype=np.int64)
        if self._by_card and self._running:
            cards = zip(host.tolist(), device.tolist(), strict=True)
            owner[:] = [self._of_card.get(card, FREE) for card in cards]
        return owner


def with_cards(apart: Apart | None, host: Ints, owner: Ints) -> Apart | None:
    """Return the same where MIG cards follow as nodes of their own, given their hosts and owners."""
    if apart is None:
        return None
    if apart.owner.ndim == 1:
        return replace(apart, domain=np.concatenate([apart.domain, apart.domain[host]]))
    columns = max(1, apart.owner.shape[1])
    table = np.full((len(apart.owner) + len(host), columns), FREE, dtype=np.int64)
    table[: len(apart.owner), : apart.owner.shape[1]] = apart.owner
    table[len(apart.owner) :, 0] = owner
    return Apart(apart.tenants, np.arange(len(table), dtype=np.int64), table)


def _owners(pairs: Iterable[tuple[Key, int]]) -> dict[Key, int]:
    """Return the tenant of each key, or `SHUT` where it has several."""
    found: dict[Key, int] = {}
    for key, tenant in pairs:
        found[key] = tenant if found.get(key, tenant) == tenant else SHUT
    return found
