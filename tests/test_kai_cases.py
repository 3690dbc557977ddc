"""KAI's cases as snapshots: small ones made here, with the answers of the source worked out by hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import cases as comparison
from translate.common import Translated

SOURCE = {"repo": "here", "path": "none", "commit": "0", "licence": "none"}


def pods(job: str, count: int, **fields: Any) -> dict[str, Any]:
    """Return a pending gang of so many pods."""
    state = {key: fields.pop(key) for key in ("mig", "state", "node", "gpu_devices") if key in fields}
    each = [{"state": "Pending", **state} for _ in range(count)]
    return {"name": job, "queue": "q", "priority": 50, "gang": {"all_or_nothing": count}, "pods": each, **fields}


def on(job: str, device: int | None, **fields: Any) -> dict[str, Any]:
    """Return a running job of one pod on node n."""
    devices = {} if device is None else {"gpu_devices": [str(device)]}
    return pods(job, 1, state="Running", node="n", **devices, **fields)


def case(jobs: list[dict[str, Any]], states: dict[str, str], **fields: Any) -> dict[str, Any]:
    """Return a case of one node: what is not said to start keeps its state."""
    node = {"name": "n", "gpus": 2, "cpu_milli": 20000, "memory_bytes": 20000000000, **fields.pop("node", {})}
    expected = {job["name"]: {"state": states.get(job["name"], job["pods"][0]["state"])} for job in jobs}
    return {
        "case_id": "k",
        "source": SOURCE,
        "action": "allocate",
        "nodes": [node],
        "queues": [{"name": "q", "guaranteed_gpus": 2, **fields.pop("queue", {})}],
        "jobs": jobs,
        "expected": {"jobs": expected, **fields.pop("expected", {})},
        **fields,
    }


def mig(**instances: int) -> dict[str, Any]:
    return {f"nvidia.com/mig-{name.replace('_', '.')}": count for name, count in instances.items()}


CUT = {"gpus": 0, "mig_instances": {"nvidia.com/mig-1g.10gb": 3, "nvidia.com/mig-1g.5gb": 2}}
WITH_10 = {"nvidia.com/mig-1g.10gb": 1}
WITH_BOTH = {"nvidia.com/mig-1g.10gb": 2, "nvidia.com/mig-1g.5gb": 1}


@pytest.mark.parametrize(
    ("stated", "numbers"),
    [
        # 0.6 runs on card 0: 0.5 has card 1, and another 0.6 has no card
        (case([on("r", 0, gpus_per_pod=0.6), pods("a", 1, gpus_per_pod=0.5)], {"a": "Binding"}), "1 of 1"),
        (
            case(
                [on("r", 0, gpus_per_pod=0.6), on("s", 1, gpus_per_pod=0.6), pods("a", 1, gpus_per_pod=0.5)],
                {},
            ),
            "0 of 1",
        ),
        # a whole card that runs without a number is the one that no share is of
        (
            case(
                [on("r", 0, gpus_per_pod=0.5), on("s", None, gpus_per_pod=1), pods("a", 1, gpus_per_pod=0.5)],
                {"a": "Running"},
            ),
            "1 of 1",
        ),
        # 60 + 50 of 100 MiB are two cards, and 40 more beside 60 fit
        (
            case(
                [pods("a", 3, gpu_memory_per_pod_mib=40), pods("b", 1, gpu_memory_per_pod_mib=60)],
                {"a": "Running", "b": "Running"},
            ),
            "4 of 4",
        ),
        # three of 60 MiB are all or nothing
        (case([pods("a", 3, gpu_memory_per_pod_mib=60)], {}), "0 of 3"),
        # 2 + 1 of three 1g.10gb and 1 of two 1g.5gb, and another 1g.10gb has none: instances count as tasks
        (
            case(
                [pods("a", 1, mig=WITH_BOTH, priority=75), pods("b", 2, mig=WITH_10), pods("c", 1, mig=WITH_10)],
                {"a": "Running", "c": "Running"},
                node=CUT,
                queue={"guaranteed_gpus": 5},
            ),
            "4 of 6",
        ),
        # one that runs has an instance, and two are left
        (case([on("r", None, mig=WITH_10), pods("a", 2, mig=WITH_10)], {"a": "Binding"}, node=CUT), "2 of 2"),
        (case([on("r", None, mig=WITH_10), pods("a", 3, mig=WITH_10)], {}, node=CUT), "0 of 3"),
    ],
)
def test_our_verdict_is_that_of_the_source(stated: dict[str, Any], numbers: str) -> None:
    row = comparison.row_of("kai", stated)
    assert (row["outcome"], row["source"], row["ours"]) == (comparison.AGREES, numbers, numbers)


@pytest.mark.parametrize(
    ("stated", "outcome"),
    [
        # both have room: the source leaves one out
        (case([pods("a", 1, gpus_per_pod=1), pods("b", 1, gpus_per_pod=1)], {"a": "Binding"}), "OURS_FITS"),
        # one has, and priority says which
        (case([pods("a", 1, gpus_per_pod=2, priority=75), pods("b", 1, gpus_per_pod=2)], {"b": "Binding"}), "OTHERS"),
        (case([pods("a", 3, gpus_per_pod=1)], {"a": "Binding"}), "FEWER"),
    ],
)
def test_other_answers_are_seen(stated: dict[str, Any], outcome: str) -> None:
    known = {"OURS_FITS": comparison.OURS_FITS, "OTHERS": comparison.WRONG[5], "FEWER": comparison.WRONG[0]}
    assert comparison.row_of("kai", stated)["outcome"] == known[outcome]


SHARE = pods("a", 1, gpus_per_pod=0.5)


@pytest.mark.parametrize(
    ("stated", "place"),
    [
        (case([SHARE], {}, expected={"max_actions": {"evictions": 1}}), "jobs.preemptible"),
        (case([pods("r", 1, state="Releasing", node="n", gpus_per_pod=1), SHARE], {}), "jobs.running"),
        (case([on("r", None, gpus_per_pod=0.5), SHARE], {"a": "Binding"}), "jobs.running.tasks.gpus"),
        # a limit, and a quota of what is never stopped, as far as they are less than all cards and somebody waits
        (case([pods("a", 3, gpus_per_pod=0.5)], {}, queue={"limit_gpus": 1}), "queues"),
        (case([pods("a", 3, gpus_per_pod=0.5, priority=100)], {}, queue={"guaranteed_gpus": 1}), "queues"),
        (case([on("r", 0, gpus_per_pod=1)], {}), "jobs"),
        (
            case([pods("a", 1, mig={"nvidia.com/mig-9g.1gb": 1})], {}, node={"mig_instances": mig(**{"9g_1gb": 1})}),
            "nodes.gpus.model",
        ),
    ],
)
def test_what_a_snapshot_cannot_say(stated: dict[str, Any], place: str) -> None:
    row = comparison.row_of("kai", stated)
    assert (row["outcome"], str(row["why"]).partition(":")[0]) == (comparison.INEXPRESSIBLE, place)


def test_a_quota_that_keeps_nobody_waiting_is_left_out() -> None:
    stated = case([pods("a", 2, gpus_per_pod=0.5)], {"a": "Binding"}, queue={"limit_gpus": 1})
    assert comparison.row_of("kai", stated)["outcome"] == comparison.AGREES


def test_what_is_left_out_is_said() -> None:
    stated = case([{**SHARE, "gang": {"groups": []}}], {})
    row = comparison.row_of("kai", stated)
    assert row["outcome"] == comparison.UNTRANSLATED


def test_instances_are_cards_of_their_own_that_stay() -> None:
    translated: Translated = comparison.TRANSLATIONS["kai"](
        case([pods("a", 1, mig=WITH_BOTH)], {"a": "Binding"}, node=CUT)
    )
    (node,) = translated.snapshot.nodes
    found = [(gpu.count, gpu.mig_static, [one.profile for one in gpu.mig_layout]) for gpu in node.gpus]
    assert found == [(3, True, ["1g.10gb"]), (2, True, ["1g.5gb"])]
    # the first model of the catalogue that has both
    assert {gpu.model for gpu in node.gpus} == {"A100-40GB"}
