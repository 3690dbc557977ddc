"""Claims of pods: the cards that they ask for or have by dynamic resource allocation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from placement.formats.kubernetes.cards import Part, thousandths
from placement.formats.kubernetes.objects import Item, Meta
from placement.formats.kubernetes.parts import Claim, Devices
from placement.formats.kubernetes.pod import Pod, PodClaim, PodSpec, PodStatus
from placement.formats.ledger import Ledger
from placement.units import exact


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
        self._pods = tuple(pods)
        self._users: dict[str, int] = {}
        self._given: set[str] = set()
        for item in self._pods:
            for key, _ in _named(item.value):
                self._users[key] = self._users.get(key, 0) + 1

    def unused(self) -> list[Item[Pod]]:
        """Return a stand-in for each claim that has devices and that no pod on their node refers to: they are not free.

        From now on only pods on the node of a claim's devices share these.
        """
        there: dict[str, int] = {}
        for item in self._pods:
            for key, _ in _named(item.value):
                if self._has(key, item.value.spec.node_name):
                    there[key] = there.get(key, 0) + 1
        found = []
        for key, claim in self.devices.claims.items():
            if not self._has(key, claim.node):
                continue
            self._users[key] = max(1, there.get(key, 0))
            if key not in there:
                namespace, _, name = key.partition("/")
                spec = PodSpec(node_name=claim.node, resource_claims=[PodClaim("devices", resource_claim_name=name)])
                found.append(Item("", "", Pod(Meta(name=f"{name}#claim", namespace=namespace), spec)))
                self.ledger.assumed(
                    "devices of claims that no pod uses", "they are held, by jobs named with #claim", key
                )
        return found

    def _has(self, key: str, node: str | None) -> bool:
        """Return whether a claim has devices, on this node."""
        claim = self.devices.claims.get(key)
        return (
            bool(node) and claim is not None and claim.node == node and any(one.cards for one in (claim, *claim.more))
        )

    def called(self, pod: Pod) -> str:
        """Return claim and request that all cards of a waiting pod come from; empty where that is not one."""
        keys = _named(pod)
        claim = self.devices.claims.get(keys[0][0]) if len(keys) == 1 else None
        if claim is None or claim.more or claim.node or not claim.request:
            return ""
        return f"{keys[0][0].partition('/')[2]}/{claim.request}"

    def missing(self, pod: Pod) -> bool:
        """Return whether nothing says what a claim of a pod asks for."""
        return any(
            key not in self.devices.claims and template not in self.devices.templates for key, template in _named(pod)
        )

    def nodes_of(self, pod: Pod) -> list[str]:
        """Return the nodes that have devices of claims of a pod."""
        known = (self.devices.claims.get(key) for key, _ in _named(pod))
        return list(dict.fromkeys(claim.node for claim in known if claim is not None and claim.node))

    def node_of(self, pod: Pod) -> str:
        """Return the node that has the devices of all claims of a pod; empty where one has none."""
        known = (self.devices.claims.get(key) for key, _ in _named(pod))
        nodes = {claim.node if claim is not None else "" for claim in known}
        return nodes.pop() if len(nodes) == 1 else ""

    def of(self, item: Item[Pod]) -> list[tuple[Part, Claim]]:
        """Return the cards that a pod claims and by which claim, those that are known to be on its node first.

        A pod that waits asks for nothing that its claims have already. Of pods that share an instance the first has it.
        """
        pod = item.value
        found: list[tuple[Part, Claim]] = []
        known: list[tuple[Part, Claim]] = []
        for key, template in _named(pod):
            claim = self.devices.claims.get(key)
            users = self._users.get(key, 1) if claim is not None else 1
            if claim is None and template:
                claim = self.devices.templates.get(template)
            if claim is None:
                why = "nothing says what it asks for"
                self.ledger.unsupported("a claim that is not in the files", why, item.where, item.file)
                continue
            if not pod.spec.node_name and self._has(key, claim.node):
                continue
            here = self._has(key, pod.spec.node_name)
            first = not here or key not in self._given
            parts = [(part, one) for one in (claim, *claim.more) for part in parts_of(one, users, first)]
            if here:
                self._given.add(key)
            (known if here else found).extend(parts)
            if users > 1:
                what = "cards of a claim that several pods share"
                self.ledger.assumed(what, "an equal share for each; of an instance all for the first", item.where)
        return known + found


def _named(pod: Pod) -> list[tuple[str, str]]:
    """Return the keys of the claim and of the template of each claim of a pod; empty where there is none."""
    made_for = pod.status.extended_resource_claim_status if pod.status is not None else None
    if not pod.spec.resource_claims and made_for is None:
        return []
    namespace = pod.metadata.namespace or "default"
    own = [] if made_for is None else [(f"{namespace}/{made_for.resource_claim_name}", "")]
    statuses = (pod.status or PodStatus()).resource_claim_statuses or ()
    made = {status.name: status.resource_claim_name for status in statuses}
    return [
        (
            f"{namespace}/{one.resource_claim_name or made.get(one.name) or ''}",
            f"{namespace}/{one.resource_claim_template_name}" if one.resource_claim_template_name else "",
        )
        for one in pod.spec.resource_claims or ()
    ] + own


def claimed_as(pod: Pod, claims: Mapping[str, Claim]) -> tuple[str, ...]:
    """Return the resources of a pod that it has by a claim which the scheduler made for them."""
    made_for = pod.status.extended_resource_claim_status if pod.status is not None else None
    if made_for is None or f"{pod.metadata.namespace or 'default'}/{made_for.resource_claim_name}" not in claims:
        return ()
    return tuple(sorted({one.resource_name for one in made_for.request_mappings or ()}))


def parts_of(claim: Claim, users: int = 1, first: bool = True) -> list[Part]:
    """Return what one of the pods that share a claim has of it; the first has what the others leave."""
    if not claim.gpus or (claim.profile and not first):
        return []
    if claim.profile:
        return [Part(1, profile=claim.profile, models=claim.gpu_models)] * claim.gpus
    each = thousandths(Fraction(1, users))
    if first and users > 1:
        each = thousandths(1 - (users - 1) * exact(each))
    return [Part(claim.gpus, None if users <= 1 else each, models=claim.gpu_models)]


def allocated(claims: Iterable[Claim]) -> list[tuple[int, int | None]] | None:
    """Return the cards and slots of claims, in their order; None where one has none."""
    found: list[tuple[int, int | None]] = []
    for claim in {id(claim): claim for claim in claims}.values():
        starts: list[int | None] = [*claim.starts] if claim.profile else [None] * len(claim.cards)
        if len(claim.cards) != claim.gpus or len(starts) != len(claim.cards):
            return None
        found += zip(claim.cards, starts, strict=True)
    return found
