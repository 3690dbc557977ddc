"""What the outputs of nvidia-smi on one node say of its cards, whichever of them there are."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from placement.formats.ledger import Ledger
from placement.formats.nvidia_smi.topology import Matrix
from placement.formats.source import File


@dataclass(slots=True)
class Instance:
    """A MIG GPU instance.

    Attributes
    ----------
    profile : str
        Empty where it is not said.
    start : int, optional
        First memory slot.
    id : int, optional
        Number of the GPU instance.
    memory : int, optional
        MiB.
    sm : int
        Multiprocessors of its compute instances; 0 where it is not said.
    engines : tuple of int
        Media engines in the order of `Geometry.engines`; empty where they are not said.
    """

    profile: str = ""
    start: int | None = None
    id: int | None = None
    memory: int | None = None
    sm: int = 0
    engines: tuple[int, ...] = ()


@dataclass(slots=True)
class Card:
    """A card; None or empty stands for what is not said.

    Attributes
    ----------
    model : str
        In the form of node labels, with dashes.
    memory : int, optional
        MiB.
    uuid : str
    mig : bool, optional
        Whether MIG mode is on.
    instances : list of Instance, optional
    busy : bool, optional
        Whether some process computes on it.
    busy_instances : set of int
        Numbers of the GPU instances with processes, where they are said.
    healthy : bool, optional
    compute_capability : str
    where : str
        Place for the ledger and for errors.
    """

    model: str = ""
    memory: int | None = None
    uuid: str = ""
    mig: bool | None = None
    instances: list[Instance] | None = None
    busy: bool | None = None
    busy_instances: set[int] = field(default_factory=set)
    healthy: bool | None = None
    compute_capability: str = ""
    where: str = ""


@dataclass(slots=True)
class Facts:
    """What one file says, or several files of one node.

    Attributes
    ----------
    file : File
    cards : dict of int to Card
        By index.
    total : int, optional
        How many cards the node has.
    driver, cuda : str
    matrix : Matrix, optional
    processes : dict of str to str, optional
        UUIDs of the cards with processes, and the place of each, where the file lists processes and not cards.
    """

    file: File
    cards: dict[int, Card] = field(default_factory=dict)
    total: int | None = None
    driver: str = ""
    cuda: str = ""
    matrix: Matrix | None = None
    processes: dict[str, str] | None = None


MOST_INDEX = 255
"""Cards of a node are numbered up to this."""


def model(product: str) -> str:
    """Return the name of a product as node labels write it: with dashes for blanks."""
    return "-".join(product.split())


def absent(text: str) -> bool:
    """Return whether a value says nothing."""
    return text.strip().strip("[]").lower() in ("", "n/a", "none", "not supported", "unknown", "not available")


def mebibytes(file: File, text: str, where: str) -> int | None:
    """Return an amount such as ``81559 MiB``, or None where there is none.

    Raises
    ------
    InputError
        If it is neither.
    """
    number, _, unit = text.strip().partition(" ")
    if number.isascii() and number.isdigit() and len(number) <= 9 and unit.strip() in ("", "MiB", "MB"):
        return int(number)
    if absent(text) or not any(letter.isdigit() for letter in text):
        return None
    raise file.error(f"{text.strip()[:40]!r} is no memory such as 81559 MiB", "print it again", where)


def mode(text: str) -> bool | None:
    """Return whether a mode is on; None where a card does not have it."""
    return {"enabled": True, "disabled": False}.get(text.strip().strip("[]").lower())


def broken(text: str) -> bool:
    """Return whether a value is what nvidia-smi prints where a card does not answer."""
    low = text.lower()
    return any(sign in low for sign in ("unknown error", "requires reset", "gpu is lost", "err!"))


def merge(found: list[Facts], ledger: Ledger) -> Facts:
    """Return what several files say of one node.

    The instances of MIG are taken from the output that says most of them, and a first slot from any.

    Raises
    ------
    InputError
        If the files are of different nodes: another number of cards, or other cards; or if a process is on a card that
        no file lists.
    """
    whole = Facts(found[0].file)
    for facts in found:
        if whole.total is not None and facts.total is not None and whole.total != facts.total:
            what = f"it lists {facts.total} cards, and {whole.file.name} lists {whole.total}"
            raise facts.file.error(what, "give outputs of one node")
        whole.total = facts.total if whole.total is None else whole.total
        whole.driver = _one(whole.driver, facts.driver, "driver version", facts.file, ledger)
        whole.cuda = _one(whole.cuda, facts.cuda, "CUDA version", facts.file, ledger)
        if facts.matrix is not None:
            if whole.matrix is not None:
                raise facts.file.error("it is the second matrix of one node", "give one, of `topo -m`")
            whole.matrix = facts.matrix
        for index, card in facts.cards.items():
            _merge_card(whole.cards.setdefault(index, Card(where=card.where)), card, index, facts.file, ledger)
    outside = [index for index in whole.cards if whole.total is not None and index >= whole.total]
    if outside:
        what = f"there is a card {outside[0]}, and another output lists {whole.total}"
        raise whole.file.error(what, "give outputs of one node")
    for facts in found:
        if facts.processes is not None:
            _merge_processes(whole, facts.file, facts.processes)
    return whole


def _merge_processes(into: Facts, file: File, processes: dict[str, str]) -> None:
    remedy = "give what nvidia-smi -L prints on the node too"
    if not into.cards:
        raise file.error("it lists processes, and nothing says which cards there are", remedy)
    of_card = {card.uuid: card for card in into.cards.values() if card.uuid}
    for uuid, where in processes.items():
        if uuid not in of_card:
            raise file.error("a process is on a card that no output lists by its UUID", remedy, where)
        of_card[uuid].busy = True
    for card in into.cards.values():
        card.busy = bool(card.busy)


def _one(first: str, second: str, what: str, file: File, ledger: Ledger) -> str:
    if first and second and first != second:
        ledger.contradiction(what, "the first file", file.name)
    return first or second


def _merge_card(into: Card, card: Card, index: int, file: File, ledger: Ledger) -> None:
    if into.uuid and card.uuid and into.uuid != card.uuid:
        raise file.error(f"card {index} is another one than in the other outputs", "give outputs of one node")
    for one in fields(Card):
        first, second = getattr(into, one.name), getattr(card, one.name)
        if one.name in ("where", "instances", "busy_instances", "busy", "healthy"):
            continue
        if first in (None, ""):
            setattr(into, one.name, second)
        elif second not in (None, "") and first != second:
            ledger.contradiction(f"{one.name.replace('_', ' ')} of a card", "the first file", card.where)
    into.busy = card.busy if into.busy is None else into.busy or bool(card.busy)
    into.busy_instances |= card.busy_instances
    into.healthy = card.healthy if into.healthy is None else into.healthy and card.healthy is not False
    if card.instances is None:
        return
    if into.instances is None:
        into.instances = card.instances
        return
    if len(into.instances) != len(card.instances):
        ledger.contradiction("number of MIG instances of a card", "the output that says their slots", card.where)
    if _said(card.instances) > _said(into.instances):
        into.instances = card.instances


def _said(instances: list[Instance]) -> tuple[bool, bool, bool]:
    return (
        any(one.start is not None for one in instances),
        any(one.id is not None for one in instances),
        any(one.profile for one in instances),
    )
