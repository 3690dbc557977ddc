"""ResourceSlice: the cards of nodes, and the MIG devices that each can be taken as.

A driver lists a card, and each MIG device that it has or could have, as devices of their own. What they draw from the
counters of the card says which exclude one another: with one counter for each memory slot, the first slot of a device
is the first of which it takes something. Only slices of a pool's newest generation count, and a pool of which slices
are missing is not used by the scheduler.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from placement.errors import InputError
from placement.formats.dra.records import GROUP, Amount, Slice, SliceDevice, TaintRule, Value
from placement.formats.kubernetes.objects import Item, Objects
from placement.formats.kubernetes.parts import Device
from placement.formats.ledger import Ledger
from placement.hardware import mig
from placement.snapshot.report import show
from placement.units import exact

NVIDIA = "gpu.nvidia.com"
DRIVER_LABEL, POOL_LABEL = "gpu-placement.io/device-driver", "gpu-placement.io/device-pool"
"""Labels of a node of the snapshot: driver and pool of its cards, where they are not NVIDIA's and called as it is."""
_SLOT = re.compile(r"memory-slice-([0-9]{1,2})")
_NAMED = (
    re.compile(r"(?P<card>.{1,253})-mig-[0-9]{1,3}g[0-9]{1,4}gb.{0,253}-[0-9]{1,3}-(?P<start>[0-9]{1,2})"),
    re.compile(r"(?P<card>.{1,253})-mig-[0-9]{1,3}-(?P<start>[0-9]{1,2})-[0-9]{1,2}"),
)
"""Names of MIG devices: parent, profile by its name or number, first slot, and in the older form the size."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A device of a slice.

    Attributes
    ----------
    driver, pool, name : str
    node : str
    kind : str
        See `kind_of`.
    attributes : mapping of str to Value
        By name without the driver.
    memory : int, optional
        Bytes.
    counters : mapping of str to frozenset of str
        Counters that it draws from, by set.
    tainted : bool
    where : str
    """

    driver: str
    pool: str
    name: str
    node: str
    kind: str
    attributes: Mapping[str, Value]
    memory: int | None
    counters: Mapping[str, frozenset[str]]
    tainted: bool
    where: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What a claim calls it."""
        return self.driver, self.pool, self.name

    def text(self, name: str) -> str:
        """Return an attribute as text; empty where it is not there."""
        value = self.attributes.get(name)
        if value is None:
            return ""
        found = next((one for one in (value.string, value.version, value.number) if one is not None), "")
        return str(found)

    @property
    def model(self) -> str:
        """Name of the card model as node labels write it."""
        return "-".join((self.text("productName") or self.text("model")).split())


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a device is: a node, a card of it, and for a MIG device the profile and first slot."""

    node: str
    card: int
    profile: str = ""
    start: int = 0


@dataclass(frozen=True, slots=True)
class Inventory:
    """The devices of all slices.

    Attributes
    ----------
    by_node : mapping of str to tuple of Device
    drivers : mapping of str to (str, str)
    listed : tuple of Listed
    spots : mapping of (str, str, str) to Spot
        By driver, pool and name.
    """

    by_node: Mapping[str, tuple[Device, ...]] = field(default_factory=dict)
    drivers: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    listed: tuple[Listed, ...] = ()
    spots: Mapping[tuple[str, str, str], Spot] = field(default_factory=dict)


def read(objects: Objects, ledger: Ledger) -> Inventory:
    """Return the cards of all nodes.

    Raises
    ------
    InputError
        If a pool lists a device twice, or an amount is none.
    """
    listed = _listed(objects, ledger)
    by_node: dict[str, list[Listed]] = {}
    for device in listed:
        by_node.setdefault(device.node, []).append(device)
    cards: dict[str, tuple[Device, ...]] = {}
    drivers: dict[str, tuple[str, str]] = {}
    spots: dict[tuple[str, str, str], Spot] = {}
    for node, devices in by_node.items():
        names = list(dict.fromkeys(device.driver for device in devices))
        driver = NVIDIA if NVIDIA in names else names[0]
        if len(names) > 1:
            ledger.unsupported("cards of several drivers on one node", "those of one are read", devices[0].where)
        mine = [device for device in devices if device.driver == driver]
        found = _cards(node, mine, spots, ledger)
        if found:
            cards[node] = found
            drivers[node] = driver, mine[0].pool
    return Inventory(cards, drivers, tuple(listed), spots)


# --- slices ------------------------------------------------------------------------------------------------------


def _listed(objects: Objects, ledger: Ledger) -> list[Listed]:
    """Return the devices of the slices that count."""
    pools: dict[tuple[str, str], list[Item[Slice]]] = {}
    for item in objects.of(GROUP, "ResourceSlice", Slice):
        spec = item.value.spec
        if not spec.driver:
            ledger.unsupported("slices without a driver", "they are of an API before v1alpha3", item.where)
            continue
        if not spec.driver.startswith("gpu."):
            ledger.ignored("devices that are no cards", "a snapshot has no such devices", item.where)
            continue
        pools.setdefault((spec.driver, spec.pool.name), []).append(item)
    rules = [item.value for item in _rules(objects, ledger)]
    found: list[Listed] = []
    for (driver, pool), items in pools.items():
        newest = max(item.value.spec.pool.generation for item in items)
        current = [item for item in items if item.value.spec.pool.generation == newest]
        for item in items:
            if item.value.spec.pool.generation < newest:
                ledger.ignored("slice of an old generation of its pool", "only the newest counts", item.where)
        wanted = {item.value.spec.pool.resource_slice_count for item in current} - {None}
        whole = not wanted or wanted == {len(current)}
        if not whole:
            ledger.contradiction(
                "number of slices of a pool", "none of its cards is used, as by the scheduler", current[0].where
            )
        seen: set[str] = set()
        for item in current:
            for index, device in enumerate(item.value.spec.devices or ()):
                path = f"{item.path}.spec.devices[{index}]".removeprefix(".")
                if not device.name or device.name in seen:
                    what = f"the pool lists a device {show(device.name)} twice" if device.name else "it has no name"
                    raise InputError.one(what, "dump the slices again", path=path, source=item.file)
                seen.add(device.name)
                one = _device(item, device, path, driver, pool, ledger)
                if one is not None:
                    spoiled = not whole or any(_matches(rule, one) for rule in rules)
                    found.append(replace(one, tainted=True) if spoiled else one)
    return found


def _rules(objects: Objects, ledger: Ledger) -> list[Item[TaintRule]]:
    """Return the rules that taint devices."""
    found = []
    for item in objects.of(GROUP, "DeviceTaintRule", TaintRule):
        selector = item.value.spec.device_selector
        if item.value.spec.taint.effect not in ("NoSchedule", "NoExecute"):
            ledger.ignored("taint of devices without effect", "it keeps nothing off", item.where)
        elif selector is not None and (selector.selectors or selector.device_class_name):
            ledger.unsupported("devices that a rule taints by class or expression", "they count as usable", item.where)
        else:
            found.append(item)
    return found


def _matches(rule: TaintRule, device: Listed) -> bool:
    one = rule.spec.device_selector
    return one is None or (
        one.driver in (None, device.driver) and one.pool in (None, device.pool) and one.device in (None, device.name)
    )


def _device(item: Item[Slice], device: SliceDevice, path: str, driver: str, pool: str, ledger: Ledger) -> Listed | None:
    """Return a device; None for one that no node or more than one has."""
    has = device.basic or device
    spec = item.value.spec
    where = f"{item.file}: {path}"
    node = spec.node_name or has.node_name or _only_node(spec.node_selector)
    if not node:
        ledger.unsupported("devices that several nodes reach", "a card is in one node", where)
        return None
    attributes = {name.rpartition("/")[2]: value for name, value in (has.attributes or {}).items()}
    if has.allow_multiple_allocations:
        ledger.unsupported("devices that several claims share", "a claim has a device for itself", where)
    counters: dict[str, frozenset[str]] = {}
    for consumed in has.consumes_counters or ():
        taken = frozenset(
            name for name, amount in (consumed.counters or {}).items() if _amount(item, path, amount, name) > 0
        )
        counters[consumed.counter_set] = counters.get(consumed.counter_set, frozenset()) | taken
    effects = {taint.effect for taint in has.taints or ()}
    kind = attributes.get("type")
    memory = (has.capacity or {}).get("memory", (has.capacity or {}).get(f"{driver}/memory"))
    return Listed(
        driver=driver,
        pool=pool,
        name=device.name,
        node=node,
        kind=kind_of((kind.string if kind is not None else None) or "gpu"),
        attributes=attributes,
        memory=None if memory is None else _amount(item, path, memory, "memory"),
        counters=counters,
        tainted=bool(effects & {"NoSchedule", "NoExecute"}),
        where=where,
    )


def kind_of(text: str) -> str:
    """Return ``"gpu"``, ``"mig"``, or something else for a part of a card or another form of it.

    Drivers have their own words in the attribute `type`: ``gpu``, ``mig``, ``vfio``, ``amdgpu``, ``amdgpu-partition``.
    """
    low = text.lower()
    return "gpu" if low.endswith("gpu") else low


def _amount(item: Item[Slice], path: str, amount: object, name: str) -> int:
    value = amount.value if isinstance(amount, Amount) else amount
    try:
        return int(exact(value))
    except ValueError as why:
        raise InputError.one(
            f"{why}, expected the amount of {show(name)}", "correct it", path=path, source=item.file
        ) from None


def _only_node(selector: Mapping[str, object] | None) -> str:
    """Return the node of a selector that names one; empty for another."""
    terms = (selector or {}).get("nodeSelectorTerms")
    if not isinstance(terms, list) or len(terms) != 1 or not isinstance(terms[0], dict):
        return ""
    for key, name in (("matchFields", "metadata.name"), ("matchExpressions", "kubernetes.io/hostname")):
        listed = terms[0].get(key)
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, dict) and one.get("key") == name and one.get("operator") == "In":
                values = one.get("values")
                if isinstance(values, list) and len(values) == 1 and isinstance(values[0], str):
                    return values[0]
    return ""


# --- cards -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Card:
    name: str = ""
    whole: Listed | None = None
    parts: list[Listed] = field(default_factory=list)


def _cards(
    node: str, devices: Sequence[Listed], spots: dict[tuple[str, str, str], Spot], ledger: Ledger
) -> tuple[Device, ...]:
    """Return the cards of a node by index, and note where its devices are."""
    cards: dict[str, _Card] = {}
    # a card goes by its UUID, by its set of counters, and by its name
    called: dict[str, str] = {}
    for device in devices:
        if device.kind == "gpu":
            cards[device.name] = _Card(device.name, whole=device)
            for other in (device.text("uuid"), device.text("pciBusID"), *device.counters):
                called.setdefault(other, device.name)
    others: dict[str, list[Listed]] = {}
    for device in devices:
        if device.kind == "mig":
            parent = _parent(device)
            names = [device.text("parentUUID"), *device.counters]
            key = next((called[one] for one in names if one and one in called), parent)
            for other in names:
                called.setdefault(other, key)
            cards.setdefault(key, _Card(key)).parts.append(device)
        elif device.kind != "gpu":
            ledger.unsupported(
                "card in another form, or a part of it that is no MIG device", "only cards are read", device.where
            )
            names = [device.text("uuid"), device.text("pciBusID"), *device.counters]
            if key := next((called[one] for one in names if one and one in called), ""):
                others.setdefault(key, []).append(device)
    found = []
    for index, card in enumerate(sorted(cards.values(), key=_order)):
        profiles: dict[str, set[int]] = {}
        if card.whole is not None:
            # who has it in another form has the card
            for device in (card.whole, *others.get(card.name, ())):
                spots[device.key] = Spot(node, index)
        for part in card.parts:
            spot = _part(node, index, part, ledger)
            if spot is not None:
                spots[part.key] = spot
                profiles.setdefault(spot.profile, set()).add(spot.start)
        if card.whole is not None and not card.whole.tainted and any(part.tainted for part in card.parts):
            ledger.assumed("card of a MIG device with a taint", "it takes no new work at all", card.whole.where)
        found.append(_made(card, {name: tuple(sorted(starts)) for name, starts in profiles.items()}))
    return tuple(found)


def _made(card: _Card, profiles: Mapping[str, tuple[int, ...]]) -> Device:
    first = card.whole or card.parts[0]
    capability = re.match(r"\d{1,3}\.\d{1,3}", first.text("cudaComputeCapability"))
    return Device(
        name=card.name,
        model=first.model,
        memory=card.whole.memory if card.whole is not None else None,
        uuid=first.text("uuid") if card.whole is not None else first.text("parentUUID"),
        profiles=profiles,
        healthy=not (first.tainted or any(part.tainted for part in card.parts)),
        compute_capability=capability[0] if capability else "",
        whole=card.whole is not None,
    )


def _parent(device: Listed) -> str:
    for pattern in _NAMED:
        found = pattern.fullmatch(device.name)
        if found is not None:
            return found["card"]
    return next((name.removesuffix("-counter-set") for name in device.counters), device.text("parentUUID"))


def _order(card: _Card) -> tuple[int, str]:
    """Return by what cards are sorted: their index or the number in their name, as nvidia-smi counts them."""
    text = card.whole.text("index") if card.whole is not None else ""
    digits = re.search(r"([0-9]{1,6})$", card.name)
    number = text if text.isascii() and text.isdigit() and len(text) < 6 else digits[1] if digits else ""
    return (int(number) if number else 10**6, card.name)


def _part(node: str, index: int, device: Listed, ledger: Ledger) -> Spot | None:
    """Return where a MIG device is: by the slots whose counters it takes, else by its name."""
    slots = [int(found[1]) for names in device.counters.values() for name in names if (found := _SLOT.fullmatch(name))]
    named = next((found for pattern in _NAMED if (found := pattern.fullmatch(device.name))), None)
    start = min(slots) if slots else int(named["start"]) if named is not None else None
    profile = mig.plain_profile(device.text("profile"))
    if not profile or start is None:
        ledger.unsupported("MIG device without profile or slots", "it takes no work", device.where)
        return None
    geometry = mig.geometry(device.model)
    known = geometry.profile(profile) if geometry is not None else None
    if geometry is not None and (known is None or start not in known.starts):
        ledger.contradiction("MIG device that the catalogue does not allow", "the catalogue", device.where)
    return Spot(node, index, known.name if known is not None else profile, start)
