"""What is in use on each node: by which running jobs, and what nobody in the files explains.

A node's record says how much is in use, a job's record who has it. Where the node says more, the rest is held by a
stand-in for work that is not known, so that nothing in use is ever free; where the jobs say more, they are believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from placement.formats.ledger import Ledger
from placement.formats.slurm.gres import Gres
from placement.formats.slurm.nodes import Host, counted

BUSY = frozenset({"ALLOCATED", "MIXED"})
"""States of a node on which something runs."""

ALL = "all cards of the node"


@dataclass(frozen=True, slots=True)
class Claim:
    """What a job has on a node.

    Attributes
    ----------
    gres : tuple of Gres
    cpus, memory : int
        Threads; MiB.
    whole : bool
        Whether nobody else may be on the node.
    where : str
        Place of the job.
    """

    gres: tuple[Gres, ...]
    cpus: int
    memory: int
    whole: bool
    where: str


@dataclass(slots=True)
class Held:
    """What one job, or work that is not known, has on a node: indices of cards, threads, MiB, and the rest by name."""

    cards: list[int] = field(default_factory=list)
    cpus: int = 0
    memory: int = 0
    extended: dict[str, int] = field(default_factory=dict)

    @property
    def anything(self) -> bool:
        """Whether it is anything at all."""
        return bool(self.cards or self.cpus or self.memory or self.extended)


def settle(host: Host, claims: Sequence[Claim], known: bool, ledger: Ledger) -> tuple[list[Held], Held]:
    """Return what each claim has, and what else is in use on the node.

    Parameters
    ----------
    host : Host
    claims : sequence of Claim
        Of the jobs that run on it.
    known : bool
        Whether the files say which jobs run at all.
    ledger : Ledger
    """
    cards = _Cards(host, ledger)
    held = [
        Held(cpus=claim.cpus, memory=claim.memory, extended={k: n for k, n in counted(claim.gres).items() if n})
        for claim in claims
    ]
    missing = [cards.exact(mine, claim) for mine, claim in zip(held, claims, strict=True)]
    for mine, claim, wanted in zip(held, claims, missing, strict=True):
        for kind, count in wanted:
            cards.any_of(mine, kind, count, claim.where)
    for mine, claim in zip(held, claims, strict=True):
        if claim.whole:
            # it shares the node with nobody, whatever it asked for
            mine.cards += cards.rest()
            mine.cpus = max(mine.cpus, host.cpus or 0)
    rest = _amounts(host, held, ledger)
    _unexplained(host, cards, rest, any(_shared(claim.gres) for claim in claims), known, ledger)
    for one in (*held, rest):
        one.cards.sort()
    return held, rest


class _Cards:
    """Cards of a node, of which each is taken once."""

    def __init__(self, host: Host, ledger: Ledger) -> None:
        self.host, self.ledger = host, ledger
        self.models = host.models
        self.numbering = host.numbering
        self.taken: set[int] = set()
        self.busy = {
            self.numbering[number]
            for gres in host.used or ()
            if gres.name == "gpu"
            for number in gres.indices or ()
            if number in self.numbering
        }

    def exact(self, mine: Held, claim: Claim) -> list[tuple[str, int]]:
        """Take the cards of which the numbers are said; return model and number of those of which they are not."""
        missing = []
        for gres in claim.gres:
            if not gres.is_card:
                continue
            got = 0
            for number in gres.indices or ():
                card = self.numbering.get(number)
                if card is None or (gres.type and self.models[card] != gres.type) or card in self.taken:
                    what = "number of a card that the node does not have as such, or that another job has"
                    self.ledger.contradiction(what, "how many there are", claim.where)
                else:
                    self._take(mine, card)
                    got += 1
            if gres.indices and len(gres.indices) != gres.count:
                what = "a job has another number of cards than it lists"
                self.ledger.contradiction(what, "the larger one", claim.where)
            wanted = max(gres.count, len(gres.indices or ()))
            if wanted > got:
                missing.append((gres.type, wanted - got))
        return missing

    def any_of(self, mine: Held, kind: str, count: int, where: str) -> None:
        """Take some cards of a model; those that the node says are in use come first, then the lowest."""
        free = [card for card in range(len(self.models)) if card not in self.taken and kind in ("", self.models[card])]
        if len(free) < count and kind:
            # a type that the node does not have: still so many of its cards are in use
            free += [c for c in range(len(self.models)) if c not in self.taken and c not in free]
        free.sort(key=lambda card: (card not in self.busy, kind not in ("", self.models[card]), card))
        for card in free[:count]:
            self._take(mine, card)
        if len(free) < count:
            self.ledger.contradiction("more cards are in use than the node has", "the node", where)
        else:
            self.ledger.assumed("which cards are in use", "the first that are left", where)

    def rest(self) -> list[int]:
        """Take all that are left."""
        left = [card for card in range(len(self.models)) if card not in self.taken]
        self.taken.update(left)
        return left

    def _take(self, mine: Held, card: int) -> None:
        self.taken.add(card)
        mine.cards.append(card)


def _amounts(host: Host, held: Sequence[Held], ledger: Ledger) -> Held:
    """Return what is in use beside cards and is not explained."""
    where = host.item.where
    cpus, memory = host.alloc_cpus, host.alloc_memory
    if "ALLOCATED" in host.states and host.cpus is not None and cpus < host.cpus:
        ledger.contradiction("a node is ALLOCATED, and not all of its CPUs are", "the state", where)
        cpus = host.cpus
    rest = Held(
        cpus=max(0, cpus - sum(one.cpus for one in held)), memory=max(0, memory - sum(one.memory for one in held))
    )
    if host.item.value.alloc_cpus is not None and cpus < sum(one.cpus for one in held):
        ledger.contradiction("jobs have more CPUs than their node says", "the jobs", where)
    for name, count in counted(host.used or ()).items():
        left = count - sum(one.extended.get(name, 0) for one in held)
        if left > 0:
            rest.extended[name] = left
    return rest


def _unexplained(host: Host, cards: _Cards, rest: Held, shares: bool, known: bool, ledger: Ledger) -> None:
    """Add to the rest the cards that are in use and that no job has."""
    where = host.item.where
    if not cards.models:
        return
    if host.used is None:
        # nothing says which cards are in use: something that is not known runs here, and may have any
        if rest.cpus or shares or (not known and host.states & BUSY):
            rest.cards += cards.rest()
            ledger.assumed("cards of a node of which it is not said what is in use", ALL, where)
        return
    said = sum(max(gres.count, len(gres.indices or ())) for gres in host.used if gres.is_card)
    if len(cards.taken) > said:
        ledger.contradiction("jobs have more cards than their node says", "the jobs", where)
    for card in sorted(cards.busy - cards.taken):
        cards.taken.add(card)
        rest.cards.append(card)
    for gres in host.used:
        if not gres.is_card:
            continue
        # a type that the node does not have says nothing of which of its cards they are
        kind = gres.type if gres.type in cards.models else ""
        mine = [card for card in cards.taken if kind in ("", cards.models[card])]
        more = max(gres.count, len(gres.indices or ())) - len(mine)
        if more > 0:
            cards.any_of(rest, kind, more, where)
    for gres in host.used:
        if gres.name in ("mps", "shard") and gres.count:
            numbers = [number for number, share in enumerate(gres.shares) if share]
            some = {cards.numbering[number] for number in numbers if number in cards.numbering} - cards.taken
            if numbers:
                rest.cards += sorted(some)
                cards.taken |= some
            else:
                rest.cards += cards.rest()
                ledger.assumed("cards of which shares are in use", ALL, where)


def _shared(gres: Sequence[Gres]) -> bool:
    return any(one.name in ("mps", "shard") and one.count for one in gres)
