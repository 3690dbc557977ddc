"""NVIDIA's driver for dynamic resource allocation in Kubernetes: the first placement it announces that is free."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from placement.heuristics.mig_rule import MigRule
from placement.mig import Slots


class DraFirstFit(MigRule):
    """The first node with room, its first card with room, and the lowest start at which an instance clashes with none.

    The driver announces every placement of every profile as a device, cards in the order of their PCI addresses and the
    devices of a card sorted by name, in which the start comes last; the scheduler goes through them from the top
    and takes the first one that matches and whose memory slices and engines are free. Nothing weighs what is left: a
    ``3g`` goes to slot 0, where it blocks ``4g``, and into a gap just as well as onto an idle card.

    Source: ``MigSpecTuple.ToCanonicalName`` in ``cmd/gpu-kubelet-plugin/mig.go`` (at 0545e9e5),
    ``generateSplitResourceSlices`` in ``driver.go`` (at 1191eaaa) and ``MigSpec.PartConsumesCounters`` in
    ``partitions.go`` (at 095b7a19) of kubernetes-sigs/dra-driver-nvidia-gpu. Differs from the source in: the node is
    the first with room, where kube-scheduler scores nodes by things other than devices; cards come in the order of
    the snapshot; a claim asks for one instance by its profile, where the source can ask for what has so much memory;
    and tasks without a profile are placed as by first fit.
    """

    name: ClassVar[str] = "dra-first-fit"

    def start(self, slots: Slots, state: int, profile: int, starts: Sequence[int]) -> int:
        """Return the lowest start."""
        return starts[0]
