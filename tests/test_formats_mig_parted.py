"""MIG layouts as a configuration of mig-parted, and such configurations read."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import placement as pl
from placement.errors import InputError
from placement.formats.mig_parted import Config, read_configs, write
from placement.formats.source import File
from placement.hardware.layouts import Layout, feasible, multiset
from placement.hardware.mig import geometry
from placement.snapshot import Gpu, Job, MigInstance, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.read import verified

MODEL = "A100-80GB"


def cards(*layout: tuple[str, int], count: int = 1, on: bool = True, static: bool = False) -> Gpu:
    instances = tuple(MigInstance(profile=profile, start=start) for profile, start in layout)
    return Gpu(model=MODEL, count=count, mig_enabled=on, mig_layout=instances, mig_static=static)


def job(name: str, profile: str, tasks: int = 1, running: Running | None = None) -> Job:
    group = TaskGroup(name="t", count=tasks, task=Task(gpus=1, mig_profile=profile))
    return Job(name=name, groups=(group,), running=running)


def on(node: str, start: int, card: int = 0) -> Running:
    return Running(tasks=(RunningTask(group="t", index=0, node=node, gpus=(card,), mig_starts=(start,)),))


def test_layouts_of_a_snapshot() -> None:
    """Nodes a, c-0 and c-1 are alike; b has a card with MIG off, and one of a model without MIG, which is left out."""
    alike = cards(("3g.40gb", 4), ("1g.10gb", 0), ("1g.10gb", 1), count=2)
    nodes = (
        Node(name="a", gpus=(alike,)),
        Node(name="b", gpus=(cards(on=False), Gpu(model="V100"), cards(("7g.80gb", 0)))),
        Node(name="c", count=2, gpus=(alike,)),
        Node(name="d"),
    )
    assert write(verified(Snapshot(nodes=nodes))).decode().splitlines() == [
        "version: v1",
        "mig-configs:",
        "  # nodes: a, c-0, c-1",
        "  placement-1:",
        "  - devices: all",
        "    mig-enabled: true",
        "    mig-devices: {1g.10gb: 2, 3g.40gb: 1}",
        "  # nodes: b",
        "  placement-2:",
        "  - devices: [0]",
        "    mig-enabled: false",
        "  - devices: [2]",
        "    mig-enabled: true",
        "    mig-devices: {7g.80gb: 1}",
    ]


def test_a_plan_keeps_what_fits_beside_it() -> None:
    """The 1g at slot 0 runs and stays. A 4g goes to slot 0 alone, so it takes the other card, whose 7g goes.

    The unused 3g at slot 4 of the first card is beside what runs there, and stays.
    """
    first = cards(("1g.10gb", 0), ("3g.40gb", 4))
    nodes = (Node(name="a", gpus=(first, cards(("7g.80gb", 0)))),)
    snapshot = verified(Snapshot(nodes=nodes, jobs=(job("runs", "1g.10gb", running=on("a", 0)), job("new", "4g.40gb"))))
    plan = pl.solve(snapshot, solver="exact")
    assert [list(row) for row in plan.tasks] == [["new", "t", 0, "a", [1]]]
    assert yaml.safe_load(write(snapshot, plan)) == {
        "version": "v1",
        "mig-configs": {
            "placement-1": [
                {"devices": [0], "mig-enabled": True, "mig-devices": {"1g.10gb": 1, "3g.40gb": 1}},
                {"devices": [1], "mig-enabled": True, "mig-devices": {"4g.40gb": 1}},
            ]
        },
    }
    assert "cleared" not in write(snapshot, plan).decode()


def test_cards_in_use_that_would_be_cleared_are_named() -> None:
    """The running 1g is on the card to which the plan adds a 3g: mig-parted makes both anew."""
    snapshot = verified(
        Snapshot(
            nodes=(Node(name="a", gpus=(cards(("1g.10gb", 0)),)),),
            jobs=(job("runs", "1g.10gb", running=on("a", 0)), job("new", "3g.40gb")),
        )
    )
    written = write(snapshot, pl.solve(snapshot, solver="exact")).decode()
    assert "  # in use, and cleared for this (node: card): a: 0" in written.splitlines()
    assert "mig-devices: {1g.10gb: 1, 3g.40gb: 1}" in written


def test_running_instances_that_no_layout_lists_are_there() -> None:
    snapshot = Snapshot(nodes=(Node(name="a", gpus=(cards(),)),), jobs=(job("runs", "2g.20gb", running=on("a", 2)),))
    assert "mig-devices: {2g.20gb: 1}" in write(verified(snapshot)).decode()


def test_no_card_with_mig() -> None:
    with pytest.raises(InputError, match="no card is of a model of which MIG geometry is known"):
        write(verified(Snapshot(nodes=(Node(name="a", gpus=(Gpu(model="V100"),)),))))


CONFIG = """
version: v1
mig-configs:
  none: [{devices: all, mig-enabled: false}]
  empty: [{devices: all, mig-enabled: true, mig-devices: {}}]
  mixed:
  - devices: [0, 1]
    mig-enabled: false
  - devices: [2]
    mig-enabled: true
    mig-devices: {1g.10gb: 2, 2g.20gb: 1, 3g.40gb: 1}
  by-model:
  - {device-filter: "0x20B210DE", devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}}
  - {device-filter: ["0x20B010DE"], devices: all, mig-enabled: true, mig-devices: {1g.5gb+me: 1}}
"""


def read(content: str, model: str = "") -> dict[str, tuple[Config, ...]]:
    return read_configs(File("config.yaml", content.encode()), model)


def test_configurations_are_read() -> None:
    """Of a card of 8 slots, 2 x 1 + 2 + 4 are taken."""
    found = read(CONFIG, MODEL)
    assert found["none"] == (Config(None, False, {}),)
    assert found["empty"] == (Config(None, True, {}),)
    assert found["mixed"] == (
        Config((0, 1), False, {}),
        Config((2,), True, {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}),
    )
    assert [one.filters for one in found["by-model"]] == [("0x20B210DE",), ("0x20B010DE",)]


def entry(rest: str) -> str:
    return f"version: v1\nmig-configs: {{x: [{rest}]}}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("version: v2\nmig-configs: {}", "version: Invalid enum value 'v2'"),
        ("version: v1\nmig-configs: {x: []}", "mig-configs.x: the configuration has no entry"),
        (entry("{devices: all}"), "Object missing required field mig-enabled"),
        (entry("{devices: some, mig-enabled: false}"), "devices: Invalid enum value 'some'"),
        (entry("{devices: all, mig-enabled: false, more: 1}"), "Object contains unknown field more"),
        (entry("{devices: all, mig-enabled: true}"), "mig-configs.x[0]: MIG is on, and mig-devices is missing"),
        (entry("{devices: all, mig-enabled: false, mig-devices: {1g.10gb: 1}}"), "MIG is off, and mig-devices lists"),
        (entry("{devices: all, mig-enabled: true, mig-devices: {bogus: 1}}"), '"bogus" is no MIG profile'),
        (entry("{devices: all, mig-enabled: true, mig-devices: {1g.10gb: 0}}"), "found 0 of 1g.10gb"),
        (entry("{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 1}}"), 'has no profile "1g.5gb"'),
        (entry("{devices: all, mig-enabled: true, mig-devices: {1g.10gb: 99999999}}"), "cannot exist together"),
        (entry("{devices: all, mig-enabled: true, mig-devices: {3g.40gb: 3}}"), "3 x 3g.40gb cannot exist together"),
        (entry("{devices: [-1], mig-enabled: false}"), "the index of a device is negative"),
        (entry("{devices: [0, 0], mig-enabled: false}"), "two entries are for one device"),
        (entry("{devices: [0], mig-enabled: false}, {devices: all, mig-enabled: false}"), "two entries are for one"),
    ],
)
def test_damaged_configurations(content: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(content, MODEL)
    assert message in str(caught.value)


def test_a_model_that_is_not_known() -> None:
    with pytest.raises(InputError, match='the MIG geometry of "V100" is not known'):
        read(CONFIG, "V100")


@pytest.mark.parametrize(
    "wanted",
    [
        {"7g.80gb": 1},
        {"2g.20gb": 3},
        {"3g.40gb": 1, "4g.40gb": 1},
        {"1g.10gb": 1, "2g.20gb": 1, "4g.40gb": 1},
    ],
)
def test_layouts_that_fit_are_not_called_impossible(wanted: dict[str, int]) -> None:
    """Slots of the A100's 8: 8; 3 x 2; 4 + 4; 1 + 2 + 4. What exists on a card now is another matter."""
    written = yaml.safe_dump(
        {"version": "v1", "mig-configs": {"x": [{"devices": "all", "mig-enabled": True, "mig-devices": wanted}]}}
    )
    assert read(written, MODEL)["x"][0].instances == wanted


A100 = geometry(MODEL)
assert A100 is not None
LAYOUTS = list(feasible(A100))


@given(st.lists(st.none() | st.sampled_from(LAYOUTS), min_size=1, max_size=6))
def test_what_is_written_is_read(layouts: list[Layout | None]) -> None:
    """Each card's counts come back under the name of its node's configuration."""
    gpus = tuple(
        cards(on=False) if one is None else cards(*((profile.name, start) for profile, start in one)) for one in layouts
    )
    written = write(verified(Snapshot(nodes=(Node(name="a", gpus=gpus),)))).decode()
    (configs,) = read(written, MODEL).values()
    found = {
        index: (one.enabled, dict(one.instances))
        for one in configs
        for index in (range(len(gpus)) if one.devices is None else one.devices)
    }
    for index, layout in enumerate(layouts):
        names = multiset(layout or ())
        assert found[index] == (layout is not None, {name: names.count(name) for name in names})
