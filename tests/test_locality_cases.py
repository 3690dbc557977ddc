"""Cases of other schedulers, and answers known by hand, on where the tasks of a job may lie relative to one another.

Each file in `fixtures/locality` is a snapshot that names where its facts come from. `expected.json` says, of a job
(``"train"``) or of a group in it (``"train:replica/decode"``), what its answer must be like; many answers are equally
right, so there are properties rather than places:

tasks         how many the exact method starts; 0 if no method may start any, which it proves
within        level of which one domain holds all of them
split         by level, the numbers of tasks in its domains, ascending
multiples     by level, what the number of tasks in each domain is a multiple of
even          by level, how far these numbers may be apart
copies_within level of which one domain holds each copy of the group
nodes, cards  all places there are
within_cards  sets of cards, each of which holds those of one task
within_zones  sets of NUMA zones, each of which holds all that one task takes
best          by level, the most domains the exact method uses: a preference, which other methods may miss

All but `tasks` and `best` hold of every plan that starts the job.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import cases as comparison

import placement as pl
from placement.snapshot import Snapshot, TaskGroup

FOLDER = Path(__file__).parent / "fixtures" / "locality"
EXPECTED: dict[str, dict[str, Any]] = json.loads((FOLDER / "expected.json").read_text("utf-8"))


@dataclass(frozen=True)
class Row:
    """A placed task."""

    group: str
    index: int
    node: str
    cards: tuple[int, ...]
    zones: tuple[int, ...]


@cache
def snapshot_of(name: str) -> Snapshot:
    return pl.load(FOLDER / name)


def domain_counts(snapshot: Snapshot, rows: list[Row], level: str) -> Counter[str]:
    """Return the tasks in each domain of a level; a node in none of them counts as the empty name."""
    position: dict[str, dict[str, str]] = {}
    for node in snapshot.nodes:
        names = [node.name] if node.count == 1 else [f"{node.name}-{copy}" for copy in range(node.count)]
        position |= {name: {**node.position, "node": name} for name in names}
    return Counter(position[row.node].get(level, "") for row in rows)


def group_at(groups: tuple[TaskGroup, ...], path: str) -> TaskGroup:
    first, _, rest = path.partition("/")
    group = next(group for group in groups if group.name == first)
    return group_at(group.groups, rest) if rest else group


def test_every_fixture_has_its_line() -> None:
    assert set(EXPECTED) == {path.name for path in FOLDER.glob("*.json")} - {"expected.json"}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_fixture_says_where_it_is_from_and_what_is_right(name: str) -> None:
    snapshot = snapshot_of(name)
    assert snapshot.source
    assert snapshot.licence
    pending = {job.name for job in snapshot.jobs if job.running is None}
    assert pending == {where.partition(":")[0] for where in EXPECTED[name]["jobs"]}


@pytest.mark.parametrize("solver", ["exact", "first-fit"])
@pytest.mark.parametrize("name", EXPECTED)
def test_answers_have_the_properties_of_the_source(name: str, solver: str) -> None:
    snapshot = snapshot_of(name)
    plan = pl.solve(snapshot, solver=solver)
    assert pl.check(snapshot, plan) == []
    for where, properties in EXPECTED[name]["jobs"].items():
        job, _, path = where.partition(":")
        rows = [
            Row(group, index, node, tuple(cards), plan.tasks[owner, group, index].zones)
            for owner, group, index, node, cards in plan.tasks
            if owner == job and (not path or f"{group}/".startswith(f"{path}/"))
        ]
        if "tasks" in properties and (solver == "exact" or properties["tasks"] == 0):
            assert len(rows) == properties["tasks"], where
        if properties.get("tasks") == 0 and solver == "exact":
            assert plan.status == "proven"
        if rows:
            holds_of_every_plan(snapshot, job, path, rows, properties)
        if solver == "exact":
            for level, most in properties.get("best", {}).items():
                assert len(domain_counts(snapshot, rows, level)) <= most, (where, level)


def holds_of_every_plan(snapshot: Snapshot, job: str, path: str, rows: list[Row], expected: dict[str, Any]) -> None:
    """Assert what any plan that starts the job must be like."""
    if "within" in expected:
        counts = domain_counts(snapshot, rows, expected["within"])
        assert len(counts) == 1
        assert "" not in counts
    for level, split in expected.get("split", {}).items():
        assert sorted(domain_counts(snapshot, rows, level).values()) == split
    for level, size in expected.get("multiples", {}).items():
        assert all(count % size == 0 for count in domain_counts(snapshot, rows, level).values())
    for level, apart in expected.get("even", {}).items():
        counts = domain_counts(snapshot, rows, level)
        assert max(counts.values()) - min(counts.values()) <= apart
    if "copies_within" in expected:
        for copy in copies(snapshot, job, path, rows):
            assert len(domain_counts(snapshot, copy, expected["copies_within"])) == 1
    if "nodes" in expected:
        assert sorted(row.node for row in rows) == expected["nodes"]
    if "cards" in expected:
        assert sorted(list(row.cards) for row in rows) == expected["cards"]
    if "within_cards" in expected:
        assert all(any(set(row.cards) <= set(cards) for cards in expected["within_cards"]) for row in rows)
    if "within_zones" in expected:
        assert all(any(set(row.zones) <= set(zones) for zones in expected["within_zones"]) for row in rows)


def copies(snapshot: Snapshot, job: str, path: str, rows: list[Row]) -> list[list[Row]]:
    """Return the placed tasks of each copy of a group whose members are groups of tasks."""
    group = group_at(next(other for other in snapshot.jobs if other.name == job).groups, path)
    sizes = {f"{path}/{inner.name}": inner.count for inner in group.groups}
    found: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.index // sizes[row.group]].append(row)
    return list(found.values())


# --- the comparison --------------------------------------------------------------------------------------------------

SOURCE = {"repo": "somebody/scheduler", "path": "a_test.go", "commit": "abc", "licence": "Apache-2.0"}
HOST, RACK = "kubernetes.io/hostname", "rack"


def kueue_case(cpus: dict[str, int], count: int, topology: dict[str, Any], places: dict[str, int], **more: Any) -> Any:
    """Return a case of pods of one core on nodes called by rack and name, such as ``"r1/a"``, each once."""
    nodes = [
        {
            "name": name,
            "labels": {RACK: name[:2], HOST: name[3:]},
            "allocatable": {"cpu": str(cpu), "pods": "10"},
            "ready": True,
        }
        for name, cpu in cpus.items()
    ]
    domains = [{"count": pods, "values": [name[3:]]} for name, pods in places.items()]
    request = {"podset": "main", "count": count, "per_pod": {"cpu": "1"}, "topology": topology}
    answer = {"podset": "main", "fit": bool(places), "assignment": {"levels": [HOST], "domains": domains}}
    levels = [RACK, HOST]
    case = {"case_id": "c", "source": SOURCE, "levels": levels, "nodes": nodes, "requests": [request]}
    return {**case, "expected": [answer], **more}


IN_A_RACK = {"mode": "required", "level": RACK}
EVEN = {"feature_gates": {"TASBalancedPlacement": True}}


@pytest.mark.parametrize(
    ("case", "outcome"),
    [
        pytest.param(
            kueue_case({"r1/a": 1, "r1/b": 1}, 2, IN_A_RACK, {"r1/a": 1, "r1/b": 1}), comparison.AGREES, id="fits"
        ),
        pytest.param(kueue_case({"r1/a": 1, "r2/b": 1}, 2, IN_A_RACK, {}), comparison.AGREES, id="no-fit"),
        pytest.param(kueue_case({"r1/a": 2}, 2, IN_A_RACK, {}), comparison.OURS_FITS, id="ours-fits"),
        # three pods of a core on two cores
        pytest.param(kueue_case({"r1/a": 2}, 3, IN_A_RACK, {"r1/a": 3}), comparison.OVERCHARGES, id="over-charged"),
        # room for one, and the source says that it is in two racks: nothing excuses ours
        pytest.param(
            kueue_case({"r1/a": 1, "r2/b": 1}, 2, IN_A_RACK, {"r1/a": 1, "r2/b": 1}), comparison.WRONG[0], id="fewer"
        ),
        # 3 + 1 in one rack are not even; 2 + 2 need both racks
        pytest.param(
            kueue_case(
                {"r1/a": 3, "r1/b": 1, "r2/c": 2},
                4,
                {"mode": "preferred", "level": RACK},
                {"r1/a": 3, "r1/b": 1},
                **EVEN,
            ),
            comparison.UNEVEN,
            id="uneven",
        ),
        pytest.param(
            kueue_case(
                {"r1/a": 1},
                1,
                {**IN_A_RACK, "slice_level": RACK},
                {},
                expected=[{"podset": "main", "fit": False, "cause": "slice level given without a slice size"}],
            ),
            comparison.AGREES,
            id="malformed",
        ),
        pytest.param(
            kueue_case({"r1/a": 1}, 1, {**IN_A_RACK, "slice_level": RACK}, {}), comparison.WRONG[3], id="refused"
        ),
    ],
)
def test_an_outcome_says_why_answers_differ(case: Any, outcome: str) -> None:
    assert comparison.row_of("kueue_tas", case)["outcome"] == outcome


def hints(policy: str, admitted: bool, *providers: dict[str, Any]) -> Any:
    """Return a case of hints on two zones, such as ``{"cpu": ["0+", "01-"]}``: preferred ones end in a plus."""
    listed = [
        {
            name: [{"numa": [int(zone) for zone in text[:-1]], "preferred": text[-1] == "+"} for text in texts]
            for name, texts in provider.items()
        }
        for provider in providers
    ]
    expected = {"pod_admitted": admitted}
    case = {"case_id": "h", "source": SOURCE, "policy": policy, "numa_nodes": 4, "providers": listed}
    return {**case, "expected": expected}


@pytest.mark.parametrize(
    ("case", "outcome"),
    [
        pytest.param(hints("restricted", True, {"a": ["0+", "1+"]}, {"b": ["1+"]}), comparison.AGREES, id="common"),
        pytest.param(hints("single-numa-node", False, {"a": ["0+"]}, {"b": ["1+"]}), comparison.AGREES, id="none"),
        pytest.param(hints("restricted", False, {"a": ["01-"]}), comparison.AGREES, id="full"),
        # one zone for a, two for b: the two zones of b hold both
        pytest.param(hints("restricted", False, {"a": ["0+"]}, {"b": ["01+"]}), comparison.OURS_FITS, id="ours-fits"),
        pytest.param(hints("restricted", True, {"a": ["0+"]}, {"b": ["1+"]}), comparison.WRONG[0], id="fewer"),
        pytest.param(hints("restricted", False, {"a": ["0-"]}), comparison.INEXPRESSIBLE, id="wide"),
    ],
)
def test_hints_become_amounts(case: Any, outcome: str) -> None:
    assert comparison.row_of("k8s_topology_manager", case)["outcome"] == outcome


@pytest.mark.parametrize(
    ("scope", "pod", "fit"),
    [
        # 4 and 8 cores: 5 and 4 are in two zones, their sum is in none, and 5 before 8 is in one after the other
        pytest.param("Container", {"containers": [5, 4]}, True, id="two-zones"),
        pytest.param("Pod", {"containers": [5, 4]}, False, id="one-zone"),
        pytest.param("Container", {"containers": [8, 5]}, False, id="full"),
        pytest.param("Container", {"containers": [8], "init_containers": [5]}, True, id="one-after-the-other"),
        pytest.param("Container", {"containers": [1], "init_containers": [9]}, False, id="never-starts"),
    ],
)
def test_containers_become_tasks_of_one_node(scope: str, pod: dict[str, list[int]], fit: bool) -> None:
    zones = [
        {
            "name": f"node-{zone}",
            "resources": [{"name": "cpu", "available": cpu}, {"name": "memory", "available": "1Gi"}],
        }
        for zone, cpu in enumerate(("4", "8"))
    ]
    node = {"name": "n", "policies": [f"SingleNUMANode{scope}Level"], "zones": zones, "node_level_only": {}}
    asked = {part: [{"requests": {"cpu": str(cpu), "memory": "1Mi"}} for cpu in cpus] for part, cpus in pod.items()}
    case = {"case_id": "n", "source": SOURCE, "node": node, "pod": {**asked, "qos": "requests=limits"}}
    row = comparison.row_of("nrt", {**case, "expected": {"fit": fit}})
    assert row["outcome"] == comparison.AGREES


def test_what_a_snapshot_cannot_state_is_a_row_too(tmp_path: Path) -> None:
    stated = kueue_case({"r1/a": 1}, 1, IN_A_RACK, {"r1/a": 1})
    stated["requests"][0]["node_affinity"] = {"preferred": [{"weight": 1, "match": []}]}
    (tmp_path / "a.jsonl").write_text(json.dumps(stated) + "\n")
    (first,) = comparison.cases_of("kueue_tas", tmp_path)
    rows = [comparison.row_of("kueue_tas", first), comparison.row_of("slurm_topology", {"case_id": "n"})]
    assert [row["outcome"] for row in rows] == [comparison.INEXPRESSIBLE, comparison.UNTRANSLATED]
    places = [str(row["why"]).partition(":")[0] for row in rows]
    assert places == ["jobs.groups.task", "a topology alone"]
    said = list(comparison.summary([{"kind": "k", **row} for row in rows]))
    assert said == ["k: 2 cases; 1 not expressible, 1 not translated"]


def test_pods_that_run_stay_where_they_are() -> None:
    nodes = [{"name": name, "allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}} for name in ("n1", "n2", "n3")]
    pods = [
        {"name": "p1", "phase": "Running", "node": "n2", "group": "g", "requests": {"cpu": "2"}},
        {"name": "p2", "phase": "Pending", "group": "g", "requests": {"cpu": "2"}},
    ]
    case = {
        "case_id": "v",
        "source": SOURCE,
        "action": "allocate",
        "nodes": nodes,
        "hypernodes": [
            {"name": "s0", "tier": 1, "members": "n1", "member_kind": "node"},
            {"name": "s1", "tier": 1, "members": ["n2", "n3"], "member_kind": "node"},
        ],
        "groups": [{"name": "g", "min_member": 2, "topology": {"mode": "hard", "highest_tier": 1}}],
        "pods": pods,
        "expected": {"binds": 1},
    }
    assert comparison.row_of("volcano", case)["outcome"] == comparison.AGREES
    snapshot = comparison.TRANSLATIONS["volcano"](case).snapshot
    plan = pl.solve(pl.loads(pl.dumps(snapshot)))
    assert sorted(zip(plan.tasks.group, plan.tasks.node, strict=True)) == [("gang/g-0", "n3"), ("gang/held-g-0", "n2")]
