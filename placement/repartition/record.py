"""What a repartition says: steps in their order, what becomes of each card, what is in the way, and the time."""

from __future__ import annotations

from typing import Literal

import msgspec

from placement.snapshot import MigInstance


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class Step(_Record, frozen=True, kw_only=True):
    """One thing to do on one card.

    Attributes
    ----------
    node : str
    card : int
        Index of the card in its node.
    action : str
        ``"destroy"``: an instance goes, its compute instance first and then the GPU instance. ``"create"``: a GPU
        instance at exactly this slot, and one compute instance that fills it. ``"enable"`` and ``"disable"``: MIG mode
        is switched.
    profile : str
        Of the instance; empty for a switch.
    start : int, optional
        Its first memory slot.
    resets : bool
        Whether the step resets the card.
    seconds : float
    """

    node: str
    card: int
    action: Literal["destroy", "create", "enable", "disable"]
    profile: str = ""
    start: int | None = None
    resets: bool = False
    seconds: float = 0.0


class CardChange(_Record, frozen=True, kw_only=True):
    """What becomes of one card that is not yet as wanted.

    Attributes
    ----------
    node : str
    card : int
        Index of the card in its node.
    model : str
        As in the snapshot.
    target : int
        Index of the card in the wanted snapshot whose layout this one gets; differs from `card` only where layouts may
        be permuted.
    outcome : str
        ``"changed"``; ``"blocked"`` if a task uses what would have to go; ``"over_budget"`` if the budget went to other
        cards. Of the latter two nothing is done.
    kept, destroyed, created : tuple of MigInstance
        Of a card over the budget: what would be. Of a blocked one all is kept.
    switch : str
        ``"on"`` or ``"off"`` if MIG mode is switched; else empty.
    gain : float
        Part of the card that becomes usable as wanted: compute slices of the instances created over those of the card,
        1 where MIG mode is switched off.
    seconds : float
        Steps of one card one after another.
    """

    node: str
    card: int
    model: str
    target: int
    outcome: Literal["changed", "blocked", "over_budget"]
    kept: tuple[MigInstance, ...] = ()
    destroyed: tuple[MigInstance, ...] = ()
    created: tuple[MigInstance, ...] = ()
    switch: Literal["", "on", "off"] = ""
    gain: float = 0.0
    seconds: float = 0.0


class Blocked(_Record, frozen=True, kw_only=True):
    """A job that stands in the way of a card's target.

    Attributes
    ----------
    node : str
    card : int
        Index of the card in its node.
    job : str
    profile : str
        Of the instance that it uses and that would have to go; empty where it uses the card itself.
    start : int, optional
        First memory slot of that instance.
    """

    node: str
    card: int
    job: str
    profile: str = ""
    start: int | None = None


class Repartition(_Record, frozen=True, kw_only=True):
    """The way from the layouts of one snapshot to those of another.

    Attributes
    ----------
    steps : tuple of Step
        In an order in which they can be done: card by card, on each card first what goes, then the switch of MIG mode,
        then what is created. Cards do not depend on one another.
    cards : tuple of CardChange
        Every card that is not as wanted already.
    blocked : tuple of Blocked
    unchanged : int
        Cards that are as wanted already.
    destroyed, created : int
        Instances, over all steps.
    seconds : float
        All steps, one after another.
    node_seconds : dict of str to float
        By node with steps: its longest card, for the cards of a node can be changed side by side.
    critical_seconds : float
        The longest of these.
    """

    steps: tuple[Step, ...] = ()
    cards: tuple[CardChange, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    unchanged: int = 0
    destroyed: int = 0
    created: int = 0
    seconds: float = 0.0
    node_seconds: dict[str, float] = {}
    critical_seconds: float = 0.0
