"""Pods that are being resized hold what they have until it is taken back."""

from __future__ import annotations

from typing import Any

import pytest
from pod_cases import GPU, cluster, node, pod, read, said, task

from placement.errors import InputError
from placement.units import exact

WHAT = "what a pod holds that is being resized"


def running(status: dict[str, Any], asked: dict[str, Any], **more: Any) -> dict[str, Any]:
    one = pod("p", "a", asked, **more)
    one["status"] |= status
    return one


@pytest.mark.parametrize(
    ("given", "cpu", "memory", "named"),
    [
        ({}, 8, "4Gi", False),
        ({"allocatedResources": {"cpu": "8", "memory": "4Gi", GPU: "1"}}, 8, "4Gi", False),
        # made smaller, and not yet taken back: the larger of each
        ({"allocatedResources": {"cpu": "16", "memory": "2Gi"}}, 16, "4Gi", True),
        ({"resources": {"requests": {"cpu": "500m", "memory": "6Gi"}}}, 8, "6Gi", True),
        (
            {"allocatedResources": {"cpu": 9}, "resources": {"requests": {"cpu": "12", "memory": "1Gi"}}},
            12,
            "4Gi",
            True,
        ),
        ({"allocatedResources": None, "resources": {"requests": None}}, 8, "4Gi", False),
    ],
)
def test_the_larger_of_what_is_asked_and_what_is_had(given: dict[str, Any], cpu: int, memory: str, named: bool) -> None:
    statuses = [{"name": "other", "allocatedResources": {"cpu": "60"}}, {"name": "c", **given}]
    one = running({"containerStatuses": statuses}, {"cpu": "8", "memory": "4Gi", GPU: "1"})
    snapshot = read(cluster(node("a")), [one])
    assert (exact(task(snapshot, "ns/p").cpu), exact(task(snapshot, "ns/p").memory)) == (exact(cpu), exact(memory))
    assert (task(snapshot, "ns/p").gpus, WHAT in said(snapshot, "assumed")) == (1, named)


def test_sidecars_too_and_pods_that_wait_have_nothing() -> None:
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    status = {"initContainerStatuses": [{"name": "s", "allocatedResources": {"cpu": "3"}}]}
    one = running(status, {"cpu": "2", GPU: "1"}, initContainers=[sidecar])
    assert exact(task(read(cluster(node("a")), [one]), "ns/p").cpu) == 5
    del one["spec"]["nodeName"]
    assert exact(task(read(cluster(node("a")), [one]), "ns/p").cpu) == 3


def test_a_wrong_amount_is_named_with_its_place() -> None:
    one = running({"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "8x"}}]}, {"cpu": "8"})
    with pytest.raises(InputError, match=r"items\[0\]\.status\.containerStatuses\[0\]\.allocatedResources\.cpu"):
        read(cluster(node("a")), [one])
