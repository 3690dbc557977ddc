"""The import directions of the rooms, held by reading every import in the tree."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "placement"

LAYERS: dict[str, set[str]] = {
    "placement.version": set(),
    "placement.errors": set(),
    "placement.interrupts": set(),
    "placement.loading": {"interrupts"},
    "placement.units": set(),
    "placement.collector": set(),
    "placement.snapshot": {"errors", "units", "collector", "hardware"},
    "placement.honoured": {"errors", "units", "snapshot", "quota"},
    "placement.plan_tables": set(),
    "placement.plan": {"errors", "units", "snapshot", "plan_tables"},
    "placement.timetable": {"plan"},
    "placement.simulation": {"timetable"},
    "placement.figures": {"units", "hardware", "snapshot", "timetable"},
    "placement.quota": {"units", "snapshot"},
    "placement.slowdown": set(),
    "placement.check": {
        "errors",
        "units",
        "collector",
        "snapshot",
        "plan",
        "timetable",
        "figures",
        "honoured",
        "slowdown",
        "hardware",
    },
    "placement.metrics": {"errors", "units", "snapshot", "plan", "timetable", "hardware", "check"},
    "placement.rules": {"errors", "units", "snapshot", "hardware"},
    "placement.hardware": {"units"},
    "placement.mig": {"hardware"},
    "placement.gang": set(),
    "placement.arguments": {"errors", "snapshot"},
    # snapshot to instance
    "placement.durations": set(),
    "placement.assignment": set(),
    "placement.tenants": {"assignment"},
    "placement.instance": {"assignment", "durations", "gang", "mig", "quota", "snapshot", "tenants"},
    "placement.index": {"instance"},
    "placement.scale": {"units", "snapshot", "rules", "hardware"},
    "placement.compile": {
        "units",
        "collector",
        "snapshot",
        "rules",
        "gang",
        "instance",
        "index",
        "scale",
        "slowdown",
        "durations",
        "hardware",
        "mig",
        "tenants",
    },
    "placement.entitlement": {"errors", "units", "snapshot", "hardware", "quota", "gang", "instance", "compile"},
    # what is said of an instance and of assignments
    "placement.state": {"instance", "tenants"},
    "placement.preferred": {"gang", "instance"},
    "placement.shared_cards": {"durations", "instance"},
    "placement.run_time": {"durations", "instance", "links", "numa", "shared_cards"},
    "placement.evaluate": {"instance", "state", "preferred", "run_time"},
    "placement.confined": {"gang", "instance"},
    "placement.solver": {"instance"},
    "placement.ladder": {"instance", "evaluate"},
    "placement.area": {"gang", "instance", "state", "evaluate", "solver"},
    # assignment to plan
    "placement.refusals": {"units", "snapshot", "rules", "instance", "hardware"},
    "placement.most": {"units", "gang", "instance"},
    "placement.empty": {"units", "snapshot", "rules", "gang", "mig", "instance", "most", "refusals"},
    "placement.links": {"snapshot", "instance"},
    "placement.numa": {"units", "snapshot", "instance", "compile"},
    "placement.naming": {"collector", "snapshot", "plan", "instance", "links", "numa", "run_time"},
    "placement.pending": {"snapshot", "collector", "plan", "instance", "naming", "empty", "entitlement", "shortage"},
    "placement.shortage": {"instance", "refusals", "state"},
    "placement.places": {"plan", "snapshot"},
    "placement.phases": {"plan", "instance", "evaluate", "solver"},
    # one call: which method is run is the engine's affair
    "placement.run": {"instance", "evaluate", "phases", "solver"},
    "placement.portfolio": {"instance", "evaluate", "solver", "run"},
}
"""Rooms, and all that each may import of the package besides itself."""

ABOVE = {
    "placement.heuristics": {"engine", "planning", "exact", "models", "report", "commands", "cli", "formats", "check"},
    "placement.exact": {"engine", "planning", "report", "commands", "cli", "formats", "check"},
    "placement.models": {"engine", "planning", "exact", "heuristics", "report", "commands", "cli", "formats", "check"},
    "placement.formats": {"engine", "planning", "exact", "models", "heuristics", "report", "commands", "cli", "check"},
    "placement.planning": {"engine", "run", "exact", "models", "heuristics", "report", "commands", "cli", "formats"},
    "placement.arrivals": {"engine", "planning", "exact", "models", "heuristics", "report", "commands", "cli", "check"},
    "placement.generate": {"engine", "planning", "exact", "models", "heuristics", "report", "commands", "cli", "check"},
    "placement.carried": {"engine", "planning", "exact", "models", "report", "commands", "cli", "formats", "check"},
    "placement.engine": {"models", "report", "commands", "cli", "formats"},
    "placement.report": {"models", "commands", "cli", "formats"},
    "placement.decisions": {"report", "commands", "cli", "formats"},
    "placement.repartition": {"engine", "planning", "exact", "models", "report", "commands", "cli", "formats"},
    "placement.scheduling": {"engine", "report", "commands", "cli", "formats", "decisions"},
    "placement.session": {"report", "commands", "cli", "formats", "decisions"},
    "placement.commands": {"cli"},
}
"""Rooms that may import much, and what they may not."""

EXACT: dict[str, set[str]] = {
    "milp": set(),
    "objectives": set(),
    "timing": set(),
    "layouts": {"milp"},
    "ledger": {"milp", "timing", "layouts"},
    "small": {"milp", "layouts"},
    "packing": {"milp", "timing", "layouts", "ledger"},
    "moves": {"milp", "objectives", "layouts", "packing"},
    "pools": {"milp", "timing", "layouts", "ledger", "packing", "moves"},
    "mig": {"milp", "objectives", "timing", "layouts", "ledger", "pools"},
    "neighbourhoods": {"milp", "timing", "layouts", "ledger", "packing", "moves", "pools"},
    "columns": {"milp", "timing", "layouts", "ledger", "packing", "pools", "neighbourhoods"},
    "ladder": {"milp", "timing", "layouts", "ledger", "small", "pools", "neighbourhoods"},
    "pipeline": {"timing", "ledger", "packing", "pools", "neighbourhoods", "columns"},
    "domains": {"milp", "objectives", "timing", "layouts", "ledger", "small", "pools", "pipeline"},
    "timed": set(),
    "": {"objectives", "ledger", "small", "mig", "columns", "ladder", "pipeline", "domains", "timed"},
    "preemption": {"", "milp"},
    "processes": {"", "small", "pipeline"},
}
"""Rooms of `placement.exact`, the package's own module being "", and all that each may import of the others."""

CHECK: dict[str, set[str]] = {
    "violation": set(),
    "exact": set(),
    "converted": set(),
    "origin": {"violation"},
    "filters": {"violation"},
    "facts": {"exact", "filters"},
    "case": {"violation", "exact", "filters", "facts"},
    "admission": {"violation", "exact", "case"},
    "loads": {"violation", "exact", "filters", "facts", "case"},
    "groups": {"violation", "exact", "facts", "case"},
    "queues": {"violation", "facts", "case"},
    "in_nodes": {"violation", "exact", "filters", "facts", "case", "loads"},
    "waiting": {"violation", "exact", "filters", "facts", "case", "loads"},
    "running": {"violation", "filters", "facts", "case", "loads", "queues"},
    "values": {"violation", "exact", "filters", "facts", "case", "groups", "waiting"},
}
"""Rooms of the judge and files beside them, lowest first, and which others each may import; `schedules` may all."""

NOWHERE = {"placement", "placement.__main__", "placement.cli", "placement.instances"}
"""What is above all rooms or, as the shipped instances, beside them."""

ONLY_IN = {
    "pyomo": ("placement.models", "placement.exact"),
    "highspy": ("placement.exact", "placement.scheduling"),
    "typer": ("placement.cli", "placement.commands"),
    "rich": ("placement.cli", "placement.commands", "placement.report"),
    "matplotlib": (),
    "scipy": (),
}
"""Libraries, and the only rooms that may import them."""


def modules() -> Iterator[tuple[str, Path]]:
    """Yield every module of the package; `placement/models` and `placement/instances` are links."""
    for folder in (PACKAGE, ROOT / "models", ROOT / "instances"):
        above = "placement" if folder == PACKAGE else f"placement.{folder.name}"
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            if folder == PACKAGE and parts[0] in ("models", "instances"):
                continue
            yield ".".join((above, *(part for part in parts if part != "__init__"))), path


def imports(name: str, path: Path) -> set[str]:
    """Return the absolute names of all that a module imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} has a relative import; imports are absolute here"
            assert node.module is not None
            # `from placement import check` imports a room, `from placement.errors import X` a name
            inner = {f"{node.module}.{alias.name}" for alias in node.names} if node.module == "placement" else set()
            found |= inner or {node.module}
    return found


MODULES = [pytest.param(name, path, id=name) for name, path in modules()]


def within(name: str, room: str) -> bool:
    return name == room or name.startswith(f"{room}.")


def test_every_room_is_seen() -> None:
    names = {name for name, _ in modules()}
    assert {"placement.cli", "placement.engine", "placement.models", "placement.check", "placement.units"} <= names


def test_every_room_has_its_place() -> None:
    rooms = {".".join(name.split(".")[:2]) for name, _ in modules()}
    assert rooms == {*LAYERS, *ABOVE, *NOWHERE}
    assert not LAYERS.keys() & ABOVE.keys()


@pytest.mark.parametrize(
    "table",
    [{room.removeprefix("placement."): below for room, below in LAYERS.items()}, EXACT],
    ids=["layers", "exact"],
)
def test_the_layers_have_no_circle(table: dict[str, set[str]]) -> None:
    order: list[str] = []
    layers = dict(table)
    while layers:
        free = [room for room, below in layers.items() if below <= {*order}]
        assert free, f"these import each other: {sorted(layers)}"
        order += free
        for room in free:
            del layers[room]


@pytest.mark.parametrize(("name", "path"), MODULES)
def test_direction(name: str, path: Path) -> None:
    own = [other for other in imports(name, path) if within(other, "placement")]
    for room, allowed in LAYERS.items():
        if within(name, room):
            beside = {f"placement.{other}" for other in allowed} | {room}
            wrong = [other for other in own if not any(within(other, one) for one in beside)]
            assert not wrong, f"{name} imports {wrong}; {room} may import {sorted(beside)} alone"
    for room, above in ABOVE.items():
        if within(name, room):
            wrong = [other for other in own if any(within(other, f"placement.{one}") for one in above)]
            assert not wrong, f"{name} imports {wrong}, which is above it"


def room_of_exact(name: str) -> str:
    """Return which room of `placement.exact` a module of it is in."""
    return ".".join(name.split(".")[2:3])


def test_every_room_of_exact_has_its_place() -> None:
    assert {room_of_exact(name) for name, _ in modules() if within(name, "placement.exact")} == {*EXACT}


@pytest.mark.parametrize(("name", "path"), [one for one in MODULES if within(str(one.id), "placement.exact")])
def test_direction_within_exact(name: str, path: Path) -> None:
    own = {room_of_exact(other) for other in imports(name, path) if within(other, "placement.exact")}
    room = room_of_exact(name)
    wrong = own - EXACT[room] - {room}
    assert not wrong, f"{name} imports {sorted(wrong)}; {room} may import {sorted(EXACT[room])} alone"


def test_rooms_of_the_judge_import_those_below() -> None:
    order = [*CHECK]
    assert all(below <= {*order[:place]} for place, below in enumerate(CHECK.values()))
    rooms = [(name.split(".")[2], name, path) for name, path in modules() if name.startswith("placement.check.")]
    assert {room for room, _, _ in rooms} == {*CHECK, "schedules"}
    for room, name, path in rooms:
        if room == "schedules":
            continue
        own = [other for other in imports(name, path) if within(other, "placement.check")]
        beside = [f"placement.check.{other}" for other in CHECK[room] | {room}]
        wrong = [other for other in own if not any(within(other, one) for one in beside)]
        assert not wrong, f"{name} imports {wrong}; {room} may import {beside} alone"


@pytest.mark.parametrize(("name", "path"), MODULES)
def test_libraries_stay_in_their_rooms(name: str, path: Path) -> None:
    for library, rooms in ONLY_IN.items():
        if any(within(other, library) for other in imports(name, path)):
            assert any(within(name, room) for room in rooms), f"{name} imports {library}"


@pytest.mark.parametrize(("name", "path"), MODULES)
def test_models_are_imported_by_one_name(name: str, path: Path) -> None:
    assert not [other for other in imports(name, path) if within(other, "models") or within(other, "instances")]


@pytest.mark.parametrize(
    "command",
    [
        ["--help"],
        ["solve", "--help"],
        ["check", "fragmentation-two-nodes", "no-such-plan.json"],
        ["schema"],
        ["generate"],
    ],
    ids=lambda command: command[0],
)
def test_no_solver_is_loaded_without_solving(command: list[str]) -> None:
    program = (
        "import sys; from placement.cli import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "print(sorted(loaded & {'pyomo', 'highspy', 'scipy'}), file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", program, *command], capture_output=True, text=True, check=True)
    assert run.stderr.splitlines()[-1] == "[]"
