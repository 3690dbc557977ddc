"""What is in use on Slurm's nodes: nothing of it may look free."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slurm_records import NOW, held, kinds, node, number, of, only, runs


def test_running_jobs_hold_the_cards_that_they_list() -> None:
    snapshot = of(
        [
            # 4 threads of either job on n1, and 4 spread over two nodes of the first: 4 + 2 and 2
            node("n1", used="gpu:h100:3(IDX:0,2-3)", alloc_cpus=6, alloc_memory=1536),
            node("n2", used="gpu:h100:1(IDX:3)", alloc_cpus=2, alloc_memory=512),
        ],
        [runs(7, "n[1-2]", ["gpu:h100:2(IDX:2-3)", "gpu:h100:1(IDX:3)"]), runs(8, "n1", ["gpu:h100:1(IDX:0)"])],
    )
    assert held(snapshot) == {"7": [("n1", (2, 3)), ("n2", (3,))], "8": [("n1", (0,))]}
    assert kinds(snapshot, "contradiction") == []
    first = snapshot.jobs[0]
    assert first.running is not None
    assert first.running.since == NOW - 50
    assert first.duration is not None
    assert first.duration.seconds == 3600
    assert first.tenant == "physics"


def test_a_node_of_a_job_without_devices() -> None:
    snapshot = of([node("n1", used=""), node("n2", used="")], [runs(7, "n[1-2]", [None, "gpu:h100:1(IDX:2)"])])
    assert held(snapshot) == {"7": [("n1", ()), ("n2", (2,))]}


def test_numbers_run_through_the_models() -> None:
    snapshot = of(
        [node("n1", "gpu:h100:2,gpu:h200:4", "gpu:h100:0(IDX:N/A),gpu:h200:2(IDX:4-5)")],
        [runs(7, "n1", ["gpu:h200:2(IDX:4-5)"])],
    )
    assert held(snapshot) == {"7": [("n1", (4, 5))]}


@pytest.mark.parametrize("asked", ["N/A", ""])
def test_what_a_job_has_is_its_allocation(asked: str) -> None:
    """A job of --gpus=2 asks for nothing by node: still 8 - 2 = 6 cards are free."""
    has = runs(7, "n1", [], tres_per_node=asked, tres_alloc_str="cpu=8,mem=64G,node=1,gres/gpu=2")
    snapshot = of([node("n1", "gpu:h100:8", "", state=["MIXED"], alloc_cpus=8, alloc_memory=65536)], [has])
    assert held(snapshot) == {"7": [("n1", (0, 1))]}
    _, task = only(snapshot)
    assert (task.gpus, task.cpu, task.memory) == (2, 8, "65536Mi")


@pytest.mark.parametrize("numbers", [True, False])
@pytest.mark.parametrize("typed", [True, False])
def test_a_job_of_several_nodes_has_on_each_what_is_in_use_there(numbers: bool, typed: bool) -> None:
    """Four cards on two nodes are not two and two where the nodes say one and three."""
    kind = "gpu:h100" if typed else "gpu"
    used = [f"{kind}:{text if numbers else text[0]}" for text in ("1(IDX:2)", "3(IDX:0-1,3)")]
    snapshot = of(
        [node(f"n{i}", used=text, alloc_cpus=1, alloc_memory=256) for i, text in enumerate(used, 1)],
        [runs(7, "n[1-2]", [], tres_alloc_str="cpu=2,node=2,gres/gpu=4,gres/gpu:h100=4")],
    )
    assert held(snapshot) == {"7": [("n1", (2,)), ("n2", (0, 1, 3))] if numbers else [("n1", (0,)), ("n2", (0, 1, 2))]}
    assert kinds(snapshot, "contradiction") == []


def test_cards_without_numbers_are_those_that_the_node_says() -> None:
    snapshot = of([node("n1", used="gpu:h100:2(IDX:1,3)")], [runs(7, "n1", [], tres_alloc_str="cpu=1,gres/gpu:h100=1")])
    assert held(snapshot) == {"7": [("n1", (1,))], "slurm/unknown/n1": [("n1", (3,))]}


@pytest.mark.parametrize(
    ("fields", "cards"),
    [
        ({"tres_per_node": "gres/gpu:1"}, 1),
        ({"tres_per_job": "gres/gpu:4"}, 2),
        ({"tres_per_task": "gres/gpu=1", "tasks": number(4)}, 2),
        ({"tres_per_socket": "gres/gpu:1", "sockets_per_node": number(2)}, 2),
    ],
)
def test_an_allocation_without_gres(fields: Mapping[str, Any], cards: int) -> None:
    """AccountingStorageTRES leaves GRES out by default: then a job has what it asked for, here on two nodes."""
    snapshot = of(
        [node("n1", used=""), node("n2", used="")],
        [runs(7, "n[1-2]", [], tres_alloc_str="cpu=2,mem=1G,node=2", **fields)],
    )
    assert held(snapshot) == {"7": [("n1", tuple(range(cards))), ("n2", tuple(range(cards)))]}


def test_more_devices_than_numbers() -> None:
    """JOB_GRES says 8 and the indices 0-3: the larger use is believed."""
    snapshot = of([node("n1", "gpu:h100:8", "")], [runs(7, "n1", ["gpu:h100:8(IDX:0-3)"])])
    assert held(snapshot) == {"7": [("n1", (0, 1, 2, 3, 4, 5, 6, 7))]}
    assert "a job has another number of cards than it lists" in kinds(snapshot, "contradiction")


@pytest.mark.parametrize(
    ("nodes", "detail", "cards"),
    [
        ("n1", [None], [(0, 1, 2, 3)]),
        ("n1", ["nvme:1"], [(0, 1, 2, 3)]),
        # the one that is listed, and the lowest three of the others
        ("n1", ["gpu:h100:1(IDX:5)"], [(0, 1, 2, 5)]),
        ("n[1-2]", ["gpu:h100:1(IDX:5)", ""], [(0, 1), (0, 1)]),
        ("n[1-2]", ["gpu:h100:3(IDX:5-7)", "gpu:h100:1(IDX:2)"], [(5, 6, 7), (2,)]),
    ],
)
def test_fewer_cards_listed_than_allocated(nodes: str, detail: list[str | None], cards: list[tuple[int, ...]]) -> None:
    """Four cards in all: the larger use is believed."""
    job = runs(7, nodes, detail, tres_alloc_str="cpu=8,mem=8G,gres/gpu=4,gres/gpu:h100=4")
    snapshot = of([node(name, "gpu:h100:8,nvme:2", "") for name in ("n1", "n2")], [job])
    assert [mine for _, mine in held(snapshot)["7"]] == cards
    named = "gres_detail has fewer cards than the job has in all" in kinds(snapshot, "contradiction")
    assert named == (detail[-1] != "gpu:h100:1(IDX:2)")


def test_two_jobs_that_list_one_card() -> None:
    snapshot = of([node("n1", used="")], [runs(7, "n1", ["gpu:h100:1(IDX:0)"]), runs(8, "n1", ["gpu:h100:1(IDX:0)"])])
    assert held(snapshot) == {"7": [("n1", (0,))], "8": [("n1", (1,))]}
    assert kinds(snapshot, "contradiction") != []


def test_what_no_job_explains_is_held_all_the_same() -> None:
    busy = node("n1", used="gpu:h100:3(IDX:0-2)", state=["MIXED"], alloc_cpus=20, alloc_memory=5000)
    snapshot = of([busy], [runs(7, "n1", ["gpu:h100:1(IDX:1)"], tres_alloc_str="cpu=4,mem=1000M")])
    assert held(snapshot) == {"7": [("n1", (1,))], "slurm/unknown/n1": [("n1", (0, 2))]}
    task = snapshot.jobs[1].groups[0].task
    assert task is not None
    # 20 - 4 threads, 5000 - 1000 MiB
    assert (task.gpus, task.cpu, task.memory) == (2, 16, "4000Mi")


def test_use_of_a_type_that_the_node_does_not_have() -> None:
    """gres says gpu:4, gres_used gpu:a100:2 and which: two cards are in use, not four."""
    snapshot = of([node("n1", "gpu:4", "gpu:a100:2(IDX:1-2)")])
    assert held(snapshot) == {"slurm/unknown/n1": [("n1", (1, 2))]}


def test_jobs_that_have_more_than_their_node_says() -> None:
    snapshot = of([node("n1", used="gpu:h100:1(IDX:0)")], [runs(7, "n1", ["gpu:h100:2(IDX:0-1)"])])
    assert held(snapshot) == {"7": [("n1", (0, 1))]}
    assert "jobs have more cards than their node says" in kinds(snapshot, "contradiction")


def test_an_allocated_node_of_which_nothing_else_is_said() -> None:
    """ALLOCATED with alloc_cpus 0: all threads are in use, and without gres_used all cards."""
    snapshot = of([node("n1", used="", state=["ALLOCATED"])])
    assert held(snapshot) == {"slurm/unknown/n1": [("n1", (0, 1, 2, 3))]}
    assert only(snapshot)[1].cpu == 32
    snapshot = of([node("n1", used="", state=["MIXED"])])
    assert held(snapshot) == {"slurm/unknown/n1": [("n1", (0, 1, 2, 3))]}


def test_shares_in_use_hold_their_cards() -> None:
    """shard:8 over two cards, of which the second has 3 of 4 in use."""
    snapshot = of([node("n1", "gpu:a100:2,shard:8", "gpu:a100:0(IDX:N/A),shard:3(0/4,3/4)")])
    assert held(snapshot) == {"slurm/unknown/n1": [("n1", (1,))]}


@pytest.mark.parametrize("fields", [{"exclusive": ["true"]}, {"exclusive": True}, {"shared": ["none"]}, {"shared": 0}])
def test_an_exclusive_job_has_all_of_its_node(fields: Mapping[str, Any]) -> None:
    snapshot = of([node("n1", used="gpu:h100:1(IDX:1)")], [runs(7, "n1", ["gpu:h100:1(IDX:1)"], **fields)])
    assert held(snapshot) == {"7": [("n1", (0, 1, 2, 3))]}
    assert only(snapshot)[1].cpu == 32


@pytest.mark.parametrize(
    ("state", "holds"),
    [
        (["RUNNING"], True),
        (["SUSPENDED"], True),
        (["COMPLETED", "COMPLETING"], True),
        ("CONFIGURING", True),
        (["COMPLETED"], False),
        (["CANCELLED"], False),
        ("TIMEOUT", False),
        (["STRANGE"], True),
    ],
)
def test_states_of_jobs(state: Any, holds: bool) -> None:
    snapshot = of([node("n1", used="")], [runs(7, "n1", ["gpu:h100:1(IDX:2)"], job_state=state)])
    assert held(snapshot) == ({"7": [("n1", (2,))]} if holds else {})


@pytest.mark.parametrize(
    "resources",
    [
        {"nodes": {"list": "n[1-2]", "allocation": [
            {"name": "n1", "cpus": {"count": 6, "used": 0}, "memory": {"used": 0, "allocated": 600}},
            {"name": "n2", "cpus": {"count": 2, "used": 0}, "memory": {"used": 0, "allocated": 200}}]}},
        {"nodes": "n[1-2]", "allocated_nodes": [
            {"nodename": "n1", "cpus_used": 6, "memory_allocated": 600},
            {"nodename": "n2", "cpus_used": 2, "memory_allocated": 200}]},
        {"nodes": "n[1-2]", "allocated_nodes": {"0": {"cpus": 6, "memory": 600}, "1": {"cpus": 2, "memory": 200}}},
    ],
    ids=["v0.0.44", "v0.0.40", "v0.0.37"],
)  # fmt: skip
def test_shares_of_a_job_in_all_versions(resources: Any) -> None:
    detail = ["gpu:h100:1(IDX:0)", "gpu:h100:1(IDX:0)"]
    snapshot = of([node("n1", used=""), node("n2", used="")], [runs(7, "n[1-2]", detail, job_resources=resources)])
    found = {group.name: group.task for group in snapshot.jobs[0].groups}
    assert {name: (task.cpu, task.memory) for name, task in found.items() if task} == {
        "node-0": (6, "600Mi"),
        "node-1": (2, "200Mi"),
    }
    assert held(snapshot) == {"7": [("n1", (0,)), ("n2", (0,))]}


def test_a_job_on_a_node_that_is_in_no_file() -> None:
    snapshot = of([node("n1", used="")], [runs(7, "n[1-2]", ["gpu:h100:1(IDX:0)", "gpu:h100:1(IDX:0)"])])
    assert held(snapshot) == {"7": [("n1", (0,))]}
    assert "a job runs on a node that is in no file" in kinds(snapshot, "contradiction")


CARDS = 6
INDICES = st.sets(st.integers(0, CARDS - 1), max_size=CARDS)
CLAIM = st.tuples(st.integers(0, CARDS), st.none() | INDICES)


def text(count: int, indices: set[int] | None) -> str:
    listed = "" if indices is None else f"(IDX:{','.join(map(str, sorted(indices))) or 'N/A'})"
    return f"gpu:h100:{count}{listed}"


@settings(max_examples=80, deadline=None)
@given(CLAIM, st.lists(CLAIM, max_size=3))
def test_nothing_in_use_is_free(says: tuple[int, set[int] | None], claims: list[tuple[int, set[int] | None]]) -> None:
    """Whatever a node and its jobs say: no card twice, none free that is listed, and never fewer than either says."""
    jobs = [runs(number_ + 1, "n1", [text(*claim)]) for number_, claim in enumerate(claims)]
    found = held(of([node("n1", f"gpu:h100:{CARDS}", text(*says), alloc_cpus=1)], jobs))
    cards = [card for places in found.values() for _, gpus in places for card in gpus]
    assert len(set(cards)) == len(cards)
    listed = set().union(says[1] or (), *(claim[1] or () for claim in claims))
    assert listed <= set(cards)
    asked = sum(max(count, len(indices or ())) for count, indices in claims)
    assert len(cards) >= min(CARDS, max(says[0], len(says[1] or ()), asked))
