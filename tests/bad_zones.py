"""Snapshots that are wrong in one way each about NUMA zones and NICs; see `bad_snapshots`."""

from __future__ import annotations

from bad_snapshots import GOOD, REMOVED, RUN, Bad

ZONE = "nodes[0].zones"
MANY = {f"{ZONE}[{i}]": {"id": i, "cpu": 0, "memory": 0} for i in range(2, 9)}

IN_NODES = [
    Bad("zone twice", {f"{ZONE}[1].id": 0}, f"{ZONE}[1]", "listed twice"),
    Bad("zone with no such card", {f"{ZONE}[1].gpus": [2, 3, 4]}, f"{ZONE}[1].gpus[2]", "has cards 0 to 3"),
    Bad("card in two zones", {f"{ZONE}[1].gpus": [1, 2, 3]}, f"{ZONE}[1].gpus[0]", "in zones[0] already"),
    Bad("card twice in a zone", {f"{ZONE}[1].gpus": [2, 3, 3]}, f"{ZONE}[1].gpus[2]", "listed twice"),
    Bad("NIC in two zones", {f"{ZONE}[1].nics[0].name": "mlx5_0"}, f"{ZONE}[1].nics[0].name", "already"),
    Bad("card in no zone", {f"{ZONE}[1].gpus": [2]}, ZONE, "card 3 is in no zone"),
    Bad("cards in no zone", {f"{ZONE}[1].gpus": REMOVED}, ZONE, "cards 2, 3 are in no zone"),
    Bad("NIC twice in a zone", {f"{ZONE}[0].nics[1]": {"name": "mlx5_0"}}, f"{ZONE}[0].nics[1]", "listed twice"),
    Bad("CPU of a zone left out", {f"{ZONE}[1].cpu": REMOVED}, f"{ZONE}[1].cpu", "no `cpu`, but zones[0] does"),
    Bad("memory of a zone left out", {f"{ZONE}[0].memory": REMOVED}, f"{ZONE}[0].memory", "but zones[1] does"),
    Bad("CPU of zones alone", {"nodes[0].cpu": REMOVED}, "nodes[0].cpu", "its zones state 128 cores in all"),
    Bad("CPU does not add up", {f"{ZONE}[1].cpu": "63500m"}, "nodes[0].cpu", "states 128, which is 128 cores, but its"),
    Bad(
        "memory does not add up",
        {f"{ZONE}[1].memory": "1Gi"},
        "nodes[0].memory",
        'states "2Ti", which is 2199023255552 bytes, but its zones state 1100585369600 bytes in all',
    ),
    Bad("CPU in two zones", {f"{ZONE}[1].cpus": "32-64"}, f"{ZONE}[1].cpus", "CPU 64 is in zones[0] too"),
    Bad("CPU twice in a zone", {f"{ZONE}[1].cpus": "32-63,40"}, f"{ZONE}[1].cpus", "CPU 40 is in this list twice"),
    Bad("CPUs backwards", {f"{ZONE}[1].cpus": "63-32"}, f"{ZONE}[1].cpus", "63-32 runs backwards; write 32-63"),
    Bad("CPU beyond all", {f"{ZONE}[1].cpus": "32-65536"}, f"{ZONE}[1].cpus", "CPU 65536, expected at most 65,535"),
    Bad("too many zones", MANY, ZONE, "9 zones, expected at most 8; keep those with"),
    Bad(
        "switch named twice",
        {f"{ZONE}[1].switches": [{"name": "switch-0"}]},
        f"{ZONE}[1].switches[0].name",
        'zones[0] has a switch "switch-0" already',
    ),
    Bad("switch with a far NIC", {f"{ZONE}[0].switches[0].nics": ["mlx5_1"]}, f"{ZONE}[0].switches[0].nics[0]", "NIC"),
    Bad("CPU list", {f"{ZONE}[1].cpus": "32..63"}, f"{ZONE}[1].cpus", "0-31,64-95"),
    Bad(
        "switch with a far card", {f"{ZONE}[0].switches[0].gpus": [2]}, f"{ZONE}[0].switches[0].gpus[0]", "not in this"
    ),
]

IN_NODES += [
    Bad("NIC of blanks", {f"{ZONE}[0].nics[0].name": "  "}, f"{ZONE}[0].nics[0].name", "nothing but blanks"),
    Bad("NIC of a line", {f"{ZONE}[0].nics[0].name": "a\n"}, f"{ZONE}[0].nics[0].name", "cannot be printed"),
    Bad("NIC of an endless name", {f"{ZONE}[0].nics[0].name": "x" * 10**5}, f"{ZONE}[0].nics[0].name", "100,000 char"),
    Bad("rail of a line", {f"{ZONE}[0].nics[0].rail": "a\n"}, f"{ZONE}[0].nics[0].rail", "cannot be printed"),
    Bad("half a character", {f"{ZONE}[1].nics[0].name": "\ud800"}, f"{ZONE}[1].nics[0].name", "surrogate pair"),
    Bad("null for a zone of a list", {f"{ZONE}[0]": None}, f"{ZONE}[0]", "an object; take it out of the list"),
    Bad("CPU that is true", {f"{ZONE}[0].cpu": True}, f"{ZONE}[0].cpu", "; write the amount"),
]

ALONE = [
    ({f"{ZONE}[0].id": -1}, f"{ZONE}[0].id"),
    ({f"{ZONE}[0].id": 2**62}, f"{ZONE}[0].id"),
    ({f"{ZONE}[0].gpus[0]": -1}, f"{ZONE}[0].gpus[0]"),
    ({f"{ZONE}[0].gpus[0]": 256}, f"{ZONE}[0].gpus[0]"),
    ({f"{ZONE}[0].nics[0].name": ""}, f"{ZONE}[0].nics[0].name"),
    ({"nodes[0].gpus[0].count": 0}, "nodes[0].gpus[0].count"),
    ({"nodes[0].gpus[0].count": -1}, "nodes[0].gpus[0].count"),
    ({"nodes[0].gpus[0].count": 257}, "nodes[0].gpus[0].count"),
    ({"nodes[0].gpus[0].count": 2**40}, "nodes[0].gpus[0].count"),
]
"""Edits from which other mistakes follow that are not worth a word, and where the one mistake is."""

IN_RUNNING = [
    Bad("in no zone", {f"{RUN}[0].zone": 2}, f"{RUN}[0].zone", "no NUMA zone 2"),
    Bad("on no NIC", {f"{RUN}[0].nics": ["mlx5_2"]}, f"{RUN}[0].nics[0]", "no NIC"),
    Bad("on too many NICs", {f"{RUN}[0].nics": ["mlx5_0", "mlx5_1"]}, f"{RUN}[0].nics", "holds 2 NICs, but asks for 1"),
    Bad(
        "on a NIC twice",
        {"jobs[2].groups[0].groups[0].task.nics": 2, f"{RUN}[0].nics": ["mlx5_0", "mlx5_0"]},
        f"{RUN}[0].nics[1]",
        "listed twice",
    ),
    Bad(
        "two tasks on a NIC",
        {f"{RUN}[2]": GOOD["jobs"][2]["running"]["tasks"][0] | {"index": 1}},
        f"{RUN}[2].nics[0]",
        'NIC "mlx5_0" of "dgx-0" is held by jobs[2].running.tasks[0]',
    ),
]

BAD_ZONES = [*IN_NODES, *IN_RUNNING]
