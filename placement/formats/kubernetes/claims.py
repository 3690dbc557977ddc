"""Claims of pods: the cards that they ask for or have by dynamic resource allocation."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from placement.formats.kubernetes.cards import Part, thousandths
from placement.formats.kubernetes.objects import Item, Meta
from placement.formats.kubernetes.parts import Claim, Devices
from placement.formats.kubernetes.pod import Pod, PodClaim, PodSpec, PodStatus
from placement.formats.ledger import Ledger


class Claims:
    """Looks up what pods claim.

    Parameters
    ----------
    devices : Devices
    pods : iterable of Item of Pod
        All that are not over; several of them may share a claim.
    ledger : Ledger
    """

    def __init__(self, devices: Devices, pods: Iterable[Item[Pod]], ledger: Ledger) -> None:
        self.devices = devices
        self.ledger = ledger
        self._users: dict[str, int] = {}
        for item in pods:
            for key, _ in _named(item.value):
                self._users[key] = self._users.get(key, 0) + 1

    def unused(self) -> list[Item[Pod]]:
        """Return a stand-in for each claim that has devices and that no pod refers to: they are not free."""
        found = []
        for key, claim in self.devices.claims.items():
            if key not in self._users and claim.node and any(one.cards for one in (claim, *claim.more)):
                namespace, _, name = key.partition("/")
                spec = PodSpec(node_name=claim.node, resource_claims=[PodClaim("devices", resource_claim_name=name)])
                found.append(Item("", "", Pod(Meta(name=f"{name}#claim", namespace=namespace), spec)))
                self.ledger.assumed(
                    "devices of claims that no pod uses", "they are held, by jobs named with #claim", key
                )
        return found

    def node_of(self, pod: Pod) -> str:
        """Return the node that has the devices of all claims of a pod; empty where one has none."""
        known = (self.devices.claims.get(key) for key, _ in _named(pod))
        nodes = {claim.node if claim is not None else "" for claim in known}
        return nodes.pop() if len(nodes) == 1 else ""

    def of(self, item: Item[Pod]) -> list[tuple[Part, Claim]]:
        """Return the cards that a pod claims, and by which claim."""
        pod = item.value
        found: list[tuple[Part, Claim]] = []
        for key, template in _named(pod):
            claim = self.devices.claims.get(key)
            users = self._users.get(key, 1) if claim is not None else 1
            if claim is None and template:
                claim = self.devices.templates.get(template)
            if claim is None:
                why = "nothing says what it asks for"
                self.ledger.unsupported("a claim that is not in the files", why, item.where, item.file)
                continue
            for one in (claim, *claim.more):
                found += [(part, one) for part in _parts(one, users)]
            if users > 1 and found:
                self.ledger.assumed("cards of a claim that several pods share", "an equal share for each", item.where)
        return found


def _named(pod: Pod) -> list[tuple[str, str]]:
    """Return the keys of the claim and of the template of each claim of a pod; empty where there is none."""
    if not pod.spec.resource_claims:
        return []
    namespace = pod.metadata.namespace or "default"
    statuses = (pod.status or PodStatus()).resource_claim_statuses or ()
    made = {status.name: status.resource_claim_name for status in statuses}
    return [
        (
            f"{namespace}/{one.resource_claim_name or made.get(one.name) or ''}",
            f"{namespace}/{one.resource_claim_template_name}" if one.resource_claim_template_name else "",
        )
        for one in pod.spec.resource_claims
    ]


def _parts(claim: Claim, users: int) -> list[Part]:
    if not claim.gpus:
        return []
    if claim.profile:
        return [Part(1, profile=claim.profile, models=claim.gpu_models)] * claim.gpus
    return [Part(claim.gpus, None if users <= 1 else thousandths(Fraction(1, users)), models=claim.gpu_models)]


def allocated(claims: Iterable[Claim]) -> list[tuple[int, int | None]] | None:
    """Return the cards and slots of claims, in their order; None where one has none."""
    found: list[tuple[int, int | None]] = []
    for claim in {id(claim): claim for claim in claims}.values():
        starts: list[int | None] = [*claim.starts] if claim.profile else [None] * len(claim.cards)
        if len(claim.cards) != claim.gpus or len(starts) != len(claim.cards):
            return None
        found += zip(claim.cards, starts, strict=True)
    return found
