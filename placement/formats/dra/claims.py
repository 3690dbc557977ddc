"""ResourceClaim and ResourceClaimTemplate: what they ask for, and the devices that are allocated to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from placement.errors import InputError
from placement.formats.dra.records import (
    GROUP,
    ClaimDevices,
    ClaimSpec,
    ClaimTemplate,
    DeviceClass,
    Exactly,
    Request,
    ResourceClaim,
    Selector,
)
from placement.formats.dra.selectors import DRIVER, Test, tests
from placement.formats.dra.slices import NVIDIA, Inventory, Listed, Spot, kind_of
from placement.formats.kubernetes.objects import Item, Objects
from placement.formats.kubernetes.parts import Claim
from placement.formats.ledger import Ledger
from placement.hardware import mig
from placement.snapshot.fields import MOST_CARDS
from placement.snapshot.report import show

NONE = "no card that its claim admits"
"""Card model of a claim that no card of the cluster satisfies."""

_KNOWN = {NVIDIA: "gpu", "mig.nvidia.com": "mig", "vfio.gpu.nvidia.com": "vfio"}
"""Classes that the driver installs, and the type of device that each stands for."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """Devices of one kind that a request asks for."""

    count: int
    profile: str = ""
    models: tuple[str, ...] = ()


class Claims:
    """Reads claims against the devices that there are.

    Parameters
    ----------
    objects : Objects
    inventory : Inventory
    ledger : Ledger
    """

    def __init__(self, objects: Objects, inventory: Inventory, ledger: Ledger) -> None:
        self.inventory = inventory
        self.ledger = ledger
        self._classes: dict[str, list[Selector]] = {}
        self._resources: dict[str, Item[DeviceClass]] = {}
        for item in objects.of(GROUP, "DeviceClass", DeviceClass):
            self._classes[item.value.metadata.name] = item.value.spec.selectors or []
            if item.value.spec.extended_resource_name:
                self._resources.setdefault(item.value.spec.extended_resource_name, item)
        # devices that differ in nothing that a selector asks about are judged once
        self._kinds: dict[tuple[object, ...], Listed] = {}
        for device in inventory.listed:
            said = tuple(sorted((name, device.text(name)) for name in device.attributes if name not in _OWN))
            self._kinds.setdefault((device.driver, device.kind, device.memory, said), device)
        self._seen: dict[object, _Asked | None] = {}

    def claims(self, objects: Objects) -> dict[str, Claim]:
        """Return the claims by ``namespace/name``.

        Raises
        ------
        InputError
            If a claim asks for an impossible number of devices, or two claims have the same one.
        """
        found: dict[str, Claim] = {}
        holder: dict[tuple[str, str, str], str] = {}
        for item in objects.of(GROUP, "ResourceClaim", ResourceClaim):
            claim = self._claim(item.file, item.path, item.value.spec)
            found[item.value.metadata.key] = self._with_allocation(item, claim, holder)
        return found

    def templates(self, objects: Objects) -> dict[str, Claim]:
        """Return what claims of templates ask for, by ``namespace/name``."""
        return {
            item.value.metadata.key: self._claim(item.file, item.path, item.value.spec.spec)
            for item in objects.of(GROUP, "ResourceClaimTemplate", ClaimTemplate)
        }

    def resources(self) -> dict[str, Claim]:
        """Return what one of each resource is that stands for a device class."""
        found = {}
        for name, item in self._resources.items():
            asked = ClaimSpec(ClaimDevices([Request(device_class_name=item.value.metadata.name)]))
            found[name] = self._claim(item.file, item.path, asked)
        return found

    # --- what is asked for ---------------------------------------------------------------------------------------

    def _claim(self, file: str, path: str, spec: ClaimSpec) -> Claim:
        where = f"{file}: {path}" if path else file
        kinds: dict[tuple[str, tuple[str, ...]], int] = {}
        for index, request in enumerate(spec.devices.requests or ()):
            asked = self._request(file, f"{path}.spec.devices.requests[{index}]".removeprefix("."), request, where)
            if asked is not None and asked.count:
                key = asked.profile, asked.models
                kinds[key] = kinds.get(key, 0) + asked.count
        if sum(kinds.values()) > 1 and spec.devices.constraints:
            self.ledger.unsupported("devices of a claim that must be alike", "any that pass are taken", where)
        claims = [Claim(gpus=count, gpu_models=models, profile=profile) for (profile, models), count in kinds.items()]
        requests = spec.devices.requests or []
        if len(requests) == len(claims) == 1 and not requests[0].first_available:
            claims = [replace(claims[0], request=requests[0].name)]
        return _joined(claims)

    def _request(self, file: str, path: str, request: Request, where: str) -> _Asked | None:
        """Return what a request asks for; None for devices that are no cards."""
        exactly: Exactly = request.exactly or request
        if request.first_available:
            exactly = request.first_available[0]
            if len(request.first_available) > 1:
                self.ledger.unsupported("alternatives of a request", "the first is asked for", where)
        if exactly.admin_access:
            self.ledger.ignored("request with admin access", "it takes nothing from others", where)
            return None
        if exactly.tolerations:
            self.ledger.ignored("tolerations of device taints", "tainted devices take no new work", where)
        if exactly.capacity:
            self.ledger.unsupported("request for a part of a device's capacity", "the whole device is taken", where)
        expressions = [one.cel.expression for one in exactly.selectors or () if one.cel is not None]
        key = exactly.device_class_name, tuple(expressions)
        if key not in self._seen:
            self._seen[key] = self._admitted(exactly.device_class_name, expressions, where)
        admitted = self._seen[key]
        if admitted is None:
            return None
        count = exactly.count if exactly.count is not None else 1
        if exactly.allocation_mode == "All":
            count = self._all(admitted, where)
        if not 0 <= count <= MOST_CARDS:
            what = f"found {show(count)} devices, expected 1 to {MOST_CARDS}"
            raise InputError.one(what, "correct the count", path=path, source=file)
        return replace(admitted, count=count)

    def _admitted(self, class_name: str, expressions: Sequence[str], where: str) -> _Asked | None:
        """Return the kind of device that a class and selectors admit."""
        parts: list[Test] = []
        if class_name in self._classes:
            expressions = [
                *(one.cel.expression for one in self._classes[class_name] if one.cel is not None),
                *expressions,
            ]
        elif class_name in _KNOWN:
            kind = _KNOWN[class_name]
            self.ledger.assumed("device class that is not there", "what the driver installs by its name", where)
            parts.append(Test(_of_kind(kind), "type", (kind,)))
        else:
            self.ledger.unsupported("device class that is not there", "a claim of it asks for no cards", where)
            return None
        for expression in expressions:
            found = tests(expression)
            if found is None:
                shown = " ".join(expression.split())[:200]
                self.ledger.unsupported(f"selector of devices {shown}", "not of a form that is read", where)
            else:
                parts += found
        return self._kind(parts, where)

    def _kind(self, parts: Sequence[Test], where: str) -> _Asked | None:
        types = {kind_of(value) for part in parts if part.attribute == "type" for value in part.values}
        fitting = [one for one in self._kinds.values() if all(part.passes(one) for part in parts)]
        kinds = types or {one.kind for one in fitting}
        drivers = {value for part in parts if part.attribute == DRIVER for value in part.values}
        if drivers and not any(name.startswith("gpu.") for name in drivers):
            self.ledger.ignored("request for devices that are no cards", "a snapshot has no such devices", where)
            return None
        if "mig" in kinds and "gpu" in kinds:
            self.ledger.unsupported("request for a card or a MIG device", "a card is asked for", where)
        if "gpu" in kinds or "mig" not in kinds:
            if kinds and "gpu" not in kinds:
                self.ledger.unsupported("request for cards for pass-through", "a card is asked for", where)
                fitting = []
            cards = [one for one in fitting if one.kind == "gpu"]
            return _Asked(1, models=self._models(parts, cards, "gpu", where))
        said = [value for part in parts if part.attribute == "profile" for value in part.values]
        profiles = list(dict.fromkeys(map(mig.plain_profile, said or [one.text("profile") for one in fitting])))
        if len(profiles) != 1:
            self.ledger.unsupported("request for a MIG device of several profiles", "the smallest is asked for", where)
            profiles.sort(key=lambda name: (mig.fraction(name) or 2, name))
        if not profiles:
            return _Asked(1, models=(NONE,))
        devices = [one for one in fitting if mig.plain_profile(one.text("profile")) == profiles[0]]
        return _Asked(1, profile=profiles[0], models=self._models(parts, devices, "mig", where))

    def _models(self, parts: Sequence[Test], fitting: Sequence[Listed], kind: str, where: str) -> tuple[str, ...]:
        """Return the models that are admitted; empty where that is no limit."""
        said = [part.values for part in parts if part.attribute in ("productName", "model") and part.values]
        models = {one.model for one in fitting}
        if not models:
            if said:
                return tuple(sorted("-".join(value.split()) for value in said[0]))
            limits = [part for part in parts if part.attribute not in ("type", "profile", DRIVER)]
            return (NONE,) if self._kinds and limits else ()
        others = [one for one in self._kinds.values() if one.kind == kind]
        if kind == "mig":
            profiles = {mig.plain_profile(one.text("profile")) for one in fitting}
            others = [one for one in others if mig.plain_profile(one.text("profile")) in profiles]
        failing = {one.model for one in others if not all(part.passes(one) for part in parts)}
        own = [part for part in parts if part.attribute in _OWN]
        if failing & models or own:
            self.ledger.unsupported("selector that admits some cards of a model", "all of the model pass", where)
        return tuple(sorted(models)) if failing - models else ()

    def _all(self, asked: _Asked, where: str) -> int:
        """Return how many devices all those of a node are."""
        numbers = {
            sum(1 for device in devices if not asked.models or device.model in asked.models)
            for devices in self.inventory.by_node.values()
        } - {0}
        if asked.profile or len(numbers) != 1:
            self.ledger.unsupported("request for all devices of a node", "as many as the node with most has", where)
        if asked.profile:
            return max(
                (
                    sum(len(device.profiles.get(asked.profile, ())) for device in devices)
                    for devices in self.inventory.by_node.values()
                ),
                default=1,
            )
        return max(numbers, default=1)

    # --- what is allocated ---------------------------------------------------------------------------------------

    def _with_allocation(
        self, item: Item[ResourceClaim], claim: Claim, holder: dict[tuple[str, str, str], str]
    ) -> Claim:
        """Return a claim with the devices that it has; these say what it is more surely than its selectors."""
        state = item.value.status
        if state is None:
            return claim
        pods = tuple(one.name for one in state.reserved_for or () if one.resource == "pods")
        claim = replace(claim, reserved_for=pods)
        if state.allocation is None:
            return claim
        spots: dict[tuple[str, str], list[Spot]] = {}
        for index, result in enumerate(state.allocation.devices.results or ()):
            path = f"{item.path}.status.allocation.devices.results[{index}]".removeprefix(".")
            key = result.driver, result.pool, result.device
            if not result.driver.startswith("gpu.") or result.admin_access:
                continue
            # a device that several claims share is allocated to each under a number of its own
            other = path if result.share_id else holder.setdefault(key, path)
            if other != path:
                what = f"the device {show(result.device)} is allocated twice, here and at {other}"
                raise InputError.one(what, "dump the claims again", path=path, source=item.file)
            spot = self.inventory.spots.get(key)
            if spot is None:
                what = "device that is allocated and that no slice lists"
                self.ledger.contradiction(what, "the slices: which card it is, is not known", f"{item.file}: {path}")
                continue
            spots.setdefault((spot.node, spot.profile), []).append(spot)
        if not spots:
            return claim
        if len({node for node, _ in spots}) > 1:
            what = "the claim has cards of several nodes"
            raise InputError.one(what, "dump the claims again", path=item.path, source=item.file)
        asked = {one.profile: one.gpu_models for one in (claim, *claim.more)}
        return _joined(
            [
                Claim(
                    gpus=len(found),
                    gpu_models=asked.get(profile, ()),
                    profile=profile,
                    node=node,
                    cards=tuple(spot.card for spot in found),
                    starts=tuple(spot.start for spot in found) if profile else (),
                    reserved_for=pods,
                )
                for (node, profile), found in spots.items()
            ]
        )


_OWN = frozenset({"uuid", "parentUUID", "index", "minor", "parentIndex", "parentMinor", "pcieRoot", "pciBusID"})
"""Attributes of one card, which its likes do not share."""


def _of_kind(kind: str) -> Callable[[Listed], bool]:
    return lambda device: device.kind == kind


def _joined(claims: Sequence[Claim]) -> Claim:
    """Return claims as one, the others of which are its `more`."""
    return replace(claims[0], more=tuple(claims[1:])) if claims else Claim(gpus=0)


def exclusive(claims: Mapping[str, Claim], where: Callable[[str], str], ledger: Ledger) -> None:
    """Note cards that claims hold both whole and in part, or twice in one slot.

    Whole card and MIG devices draw from one set of counters, so that the scheduler allows one or the other; a driver
    that does not say so has given the card away twice.
    """
    whole: dict[tuple[str, int], str] = {}
    parts: dict[tuple[str, int], str] = {}
    for name, claim in claims.items():
        for one in (claim, *claim.more):
            for card in one.cards:
                (parts if one.profile else whole).setdefault((one.node, card), name)
    for key in whole.keys() & parts.keys():
        what = "card that is allocated whole and as a MIG device"
        ledger.contradiction(what, "both: neither is free", where(whole[key]))
