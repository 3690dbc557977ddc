"""Real files of other systems, one by one: what the readers make of them, beside what is expected.

A folder holds files and an ``index.jsonl`` that says of each what it is and what a reader should find. Each file goes
through `placement.formats`; what is expected is asked of the snapshot here, in code, where it is more than that the
file can be read. Outcomes: ``as expected``, ``read`` (nothing more is expected of it), ``refused`` with the message
(as expected where that is what should happen), and ``WRONG``.

    python benchmarks/format_cases.py FOLDER
    python benchmarks/format_cases.py FOLDER --output format_cases.json
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

from table import Column, Row, heading, line, machine, write

import placement as pl
from placement import units
from placement.formats.kubernetes.objects import Objects
from placement.formats.kubernetes.zones import read as zones_of
from placement.formats.kueue import read as kueue
from placement.formats.ledger import Ledger
from placement.formats.mig_parted import read_configs
from placement.formats.read import read
from placement.formats.slurm import gres_conf, topology
from placement.formats.slurm.fabric import Fabric
from placement.formats.slurm.hostlist import expand
from placement.formats.source import File, files
from placement.formats.volcano import read as volcano
from placement.snapshot import Gpu, Node, Snapshot

COLUMNS = (
    Column("file", "file", 58),
    Column("outcome", "outcome", 12),
    Column("what", "what", 90),
)
AS_EXPECTED, READ, REFUSED, WRONG = "as expected", "read", "refused", "WRONG"


# --- what a snapshot says --------------------------------------------------------------------------------------


def only(snapshot: Snapshot) -> Node:
    """Return the one node of a snapshot."""
    (node,) = snapshot.nodes
    return node


def cards(node: Node) -> list[Gpu]:
    """Return the cards of a node by index."""
    return [gpu for gpu in node.gpus for _ in range(gpu.count)]


def instances(node: Node) -> Counter[str]:
    """Return the MIG instances that exist on a node."""
    return Counter(one.profile for gpu in cards(node) if gpu.mig_enabled for one in gpu.mig_layout)


def whole(node: Node) -> int:
    """Return the healthy cards that are neither cut nor shared."""
    return sum(not gpu.mig_enabled and gpu.replicas is None and gpu.health == "healthy" for gpu in cards(node))


def shares(node: Node) -> int:
    """Return the shares of cards that there are."""
    return sum(gpu.replicas or 0 for gpu in cards(node))


def zones(node: Node) -> list[set[int]]:
    """Return the cards of each NUMA zone."""
    return [set(zone.gpus) for zone in node.zones]


def nvlinks(node: Node, width: int | None = None) -> set[tuple[int, int]]:
    """Return the pairs of cards that NVLink joins."""
    some = [link for link in node.links if link.kind == "NVLINK" and width in (None, link.width)]
    return {(min(link.a, link.b), max(link.a, link.b)) for link in some}


def busy(snapshot: Snapshot) -> dict[str, set[int]]:
    """Return the cards that running work holds, by node."""
    found: dict[str, set[int]] = {}
    for job in snapshot.jobs:
        for task in job.running.tasks if job.running is not None else ():
            found.setdefault(task.node, set()).update(task.gpus)
    return found


def free(snapshot: Snapshot) -> int:
    """Return the healthy cards on nodes that take work which nobody holds."""
    taken = busy(snapshot)
    return sum(
        gpu.health == "healthy" and card not in taken.get(node.name, ())
        for node in snapshot.nodes
        if not node.cordoned
        for card, gpu in enumerate(cards(node))
    )


def says(snapshot: Snapshot, *parts: str) -> bool:
    """Return whether some entry of the ledger has all these words."""
    return any(all(part in f"{entry.what} {entry.why} {entry.where}" for part in parts) for entry in snapshot.ledger)


def pairs(*some: str) -> set[tuple[int, int]]:
    """Return pairs of cards, written ``"01"``."""
    return {(int(one[0]), int(one[1])) for one in some}


def every_pair(number: int) -> set[tuple[int, int]]:
    """Return all pairs of so many cards."""
    return {(a, b) for a in range(number) for b in range(a + 1, number)}


def bytes_of(gpu: Gpu) -> Fraction | None:
    """Return the device memory of a card."""
    return None if gpu.memory is None else units.exact(gpu.memory)


MESH = pairs("01", "02", "03", "04", "12", "13", "15", "23", "26", "37", "45", "46", "47", "56", "57", "67")
"""NVLink of a DGX-1."""


# --- what is expected ------------------------------------------------------------------------------------------

Judge = Callable[[Snapshot], bool]

EXPECTED: dict[str, Judge] = {
    "topo_m/dgx1_p100_fused_header.txt": lambda s: nvlinks(only(s)) == MESH and len(cards(only(s))) == 8,
    "topo_m/dgx_a100.txt": lambda s: (
        nvlinks(only(s), 12) == every_pair(8) and sorted(zones(only(s)), key=min) == [{0, 1}, {2, 3}, {4, 5}, {6, 7}]
    ),
    "topo_m/gb200_ansi_empty_affinity.txt": lambda s: (
        nvlinks(only(s), 18) == every_pair(4) and zones(only(s)) == [{0, 1}, {2, 3}]
    ),
    "topo_m/rtx4090_8_all_sys.txt": lambda s: sorted(map(len, zones(only(s)))) == [4, 4],
    "topo_m/power9_4gpu_nv3.txt": lambda s: nvlinks(only(s), 3) == pairs("01", "23"),
    "topo_m/rtx6000ada_4_spaces.txt": lambda s: sorted(map(len, zones(only(s)))) == [2, 2],
    "topo_m/two_gpu_nvlink_numa_na.txt": lambda s: zones(only(s)) == [{0, 1}],
    "topo_m/pcie_8_uneven_sockets_6_2.txt": lambda s: sorted(map(len, zones(only(s)))) == [2, 6],
    "topo_m/dgx_h100_rows_cut_after_nic5.txt": lambda s: len(cards(only(s))) == 8 and says(s, "NIC"),
    "topo_m/pcie_4_interleaved_cpus_truncated.txt": lambda s: (
        zones(only(s)) == [{0, 1}, {2, 3}] and not any(zone.cpus for zone in only(s).zones)
    ),
    "topo_m/hopper_8_topo_mp_hides_nvlink.txt": lambda s: not only(s).links and says(s, "NVLink"),
    "topo_m/l40s_8_two_sockets_spaces.txt": lambda s: zones(only(s)) == [{0, 1, 2, 3}, {4, 5, 6, 7}],
    "topo_m/k80_6_soc_mixed_separators.txt": lambda s: zones(only(s)) == [{0, 1}, {2, 3, 4, 5}],
    "nvidia_smi/a100_8_mig_two.xml": lambda s: (
        len(cards(only(s))) == 8
        and Counter(one.profile for one in cards(only(s))[2].mig_layout) == Counter(["4g.20gb", "2g.10gb", "1g.5gb"])
        and Counter(one.profile for one in cards(only(s))[3].mig_layout) == Counter(["3g.20gb", "2g.10gb", "2g.10gb"])
    ),
    "k8s_nodes/h100_mig_mixed.json": lambda s: (
        instances(only(s)) == Counter({"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}) and whole(only(s)) == 0
    ),
    "k8s_nodes/h100_mig_capable_disabled_single.json": lambda s: (whole(only(s)), instances(only(s))) == (1, Counter()),
    "k8s_nodes/a100_mig_single_1g5gb.json": lambda s: (
        (len(cards(only(s))), instances(only(s))) == (1, Counter({"1g.5gb": 7}))
    ),
    "k8s_nodes/t4_time_slicing_shared.json": lambda s: (
        (len(cards(only(s))), shares(only(s)), only(s).gpus[0].model) == (4, 16, "Tesla-T4")
    ),
    "k8s_nodes/t4_time_slicing_renamed.json": lambda s: (
        (len(cards(only(s))), shares(only(s)), whole(only(s))) == (4, 16, 0)
    ),
    "k8s_nodes/a10g_time_slicing_replicas_2.json": lambda s: (len(cards(only(s))), shares(only(s))) == (1, 2),
    "k8s_nodes/aws_time_slicing_12_units.json": lambda s: (
        units.exact(only(s).cpu or 0) == Fraction(7910, 1000) and units.exact(only(s).memory or 0) == 31696348 * 1024
    ),
    "k8s_nodes/mig_time_slicing_128.json": lambda s: (
        whole(only(s)) == 0 and units.exact(only(s).extended.get("nvidia.com/gpu.shared", 0)) == 128
    ),
    "k8s_nodes/a100_mig_label_name_mismatch.json": lambda s: (
        whole(only(s)) == 0
        and (
            instances(only(s))["3g.20gb"] == 16 or units.exact(only(s).extended.get("nvidia.com/mig-3g.20gb", 0)) == 16
        )
    ),
    "k8s_nodes/a100_mig_invalid_product.json": lambda s: free(s) == 0 and says(s, "INVALID"),
    "k8s_nodes/vgpu_a16_full_node.json": lambda s: (
        [bytes_of(one) for one in cards(only(s))] == [4096 * 2**20] and not only(s).cordoned
    ),
    "k8s_nodes/h100_8gpu_dell.json": lambda s: whole(s.nodes[1]) == 0,
    "k8s_nodes/alibaba_openb_three_nodes.yaml": lambda s: all(len(cards(node)) == 2 for node in s.nodes),
    "k8s_nodes/hami_register_annotation.json": lambda s: (
        [bytes_of(one) for one in cards(only(s))] == [32768 * 2**20] * 2 and shares(only(s)) == 20
    ),
    "k8s_nodes/h200_mps_replicas_10.json": lambda s: (len(cards(only(s))), shares(only(s))) == (8, 80),
    "k8s_nodes/a100_mps_replicas_4.json": lambda s: (len(cards(only(s))), shares(only(s))) == (1, 4),
    "slurm/node_gpu_model_idle_24.05_dp0.0.41.json": lambda s: free(s) == sum(len(cards(node)) for node in s.nodes) > 0,
    "slurm/node_gpu_model_idle_25.11_dp0.0.44.json": lambda s: free(s) == sum(len(cards(node)) for node in s.nodes) > 0,
    "slurm/node_gpu_model_allocated_24.11_dp0.0.42.json": lambda s: free(s) == 0,
    "slurm/node_gpu_model_allocated_25.05_dp0.0.43.json": lambda s: free(s) == 0,
    "slurm/node_down_24.05_dp0.0.41.json": lambda s: free(s) == 0,
    "slurm/node_draining_24.05_dp0.0.41.json": lambda s: free(s) == 0,
}
"""Of a snapshot."""

REFUSED_WITH: dict[str, tuple[str, ...]] = {
    "topo_m/hgx_h200_pasted_fused_cell.txt": ("GPU5",),
    "topo_m/pcie_8_truncated_after_gpu4.txt": ("GPU5", "GPU6", "GPU7"),
    "nvidia_smi/h200_mig_table_idle.txt": ("-q",),
}
"""Files that are to be refused, and what the message has to name."""


def outcome(folder: Path, name: str, kind: str) -> tuple[str, str]:
    """Return what became of a file, and what it says."""
    found = next(iter(files(str(folder / name))))
    try:
        text, right = _judged(found, name, kind)
    except pl.PlacementError as error:
        message = str(error).replace(f"{folder}/", "")
        named = REFUSED_WITH.get(name)
        if named is None:
            return (WRONG if name in EXPECTED else REFUSED), message
        return (AS_EXPECTED if all(part in message for part in named) else WRONG), message
    if name in REFUSED_WITH:
        return WRONG, f"read: {text}"
    return (READ if right is None else AS_EXPECTED if right else WRONG), text


def _judged(file: File, name: str, kind: str) -> tuple[str, bool | None]:
    """Return what a file was read as, and whether that is what is expected."""
    group = name.partition("/")[0]
    if group == "slurm_topology":
        return _fabric(file, name)
    if group == "slurm_gres":
        return _gres(file, name)
    if group in ("kueue_objects", "volcano_objects"):
        return _objects(file, name, group)
    if group == "nrt":
        found = zones_of(Objects([file]), Ledger())
        return ", ".join(f"{node}: {len(one.zones)} zones" for node, one in found.items()), bool(found)
    if name == "mig/mig_parted_config.yaml":
        return f"{len(read_configs(file))} layouts", None
    if group == "mig":
        beside = File("L", b"GPU 0: NVIDIA B200 (UUID: GPU-1)\n", "nvidia-smi")
        snapshot = read([beside, File(file.name, file.data, "nvidia-smi")])
        return _summary(snapshot), says(snapshot, "profile")
    format_ = "nvidia-smi" if group in ("topo_m", "nvidia_smi") else "slurm" if group == "slurm" else "kubernetes"
    snapshot = read(_with_nodes(File(file.name, file.data, format_), name))
    judge = EXPECTED.get(name)
    return _summary(snapshot), None if judge is None else judge(snapshot)


LABELS = {
    "cloud.provider.com/topology-block": "b1",
    "cloud.provider.com/topology-rack": "r1",
    "cloud.provider.com/node-group": "tas-group",
}
NODES = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{i}", "labels": {"kubernetes.io/hostname": f"node-{i}", **LABELS}},
            "status": {"allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "8"}},
        }
        for i in range(4)
    ],
}
"""Nodes for files that have pods alone."""


def _with_nodes(file: File, name: str) -> list[File]:
    """Return a file, and nodes beside it where it has none of its own."""
    if name == "k8s_nodes/pods_gpu_forms.json":
        return [File("nodes", json.dumps(NODES).encode(), "kubernetes"), file]
    if name.startswith("slurm/job_"):
        return [_hosts_of(file), file]
    return [file]


def _hosts_of(file: File) -> File:
    """Return Slurm's list of the nodes that jobs of a file name, with eight cards of each model that they name."""
    text = file.data.decode()
    named = {one for found in re.findall(r'"nodes"\s*:\s*"([^"]+)"', text) for one in expand(found)} or {"cn1"}
    models = sorted(set(re.findall(r"gpu:([a-z][a-z0-9]*)[:=]", text)))
    gres = ",".join(f"gpu:{model}:8" for model in models) or "gpu:8"
    nodes = [
        {
            "name": one,
            "state": ["MIXED"],
            "cpus": 64,
            "real_memory": 262144,
            "gres": gres,
            "gres_used": "",
            "partitions": [],
        }
        for one in sorted(named)
    ]
    return File("nodes", json.dumps({"meta": {}, "nodes": nodes}).encode(), "slurm")


def _summary(snapshot: Snapshot) -> str:
    held = sum(len(some) for some in busy(snapshot).values())
    total = sum(len(cards(node)) * node.count for node in snapshot.nodes)
    noted = Counter(entry.kind for entry in snapshot.ledger)
    return (
        f"{sum(node.count for node in snapshot.nodes)} nodes, {total} cards, {held} held; "
        f"{len(snapshot.jobs)} jobs; ledger: {', '.join(f'{number} {kind}' for kind, number in noted.items())}"
    )


# --- topology, gres.conf, objects ------------------------------------------------------------------------------

FABRICS: dict[str, Callable[[Fabric], bool]] = {
    "slurm_topology/tree_three_levels.conf": lambda f: (len(f.levels), len(f.positions)) == (3, 96),
    "slurm_topology/only_no_topology.conf": lambda f: not any(f.positions.values()),
    "slurm_topology/skeleton_no_nodes.yaml": lambda f: not any(f.positions.values()),
    "slurm_topology/block_comments.conf": lambda f: (
        Counter(Counter(one[f.levels[-1]] for one in f.positions.values()).values()) == Counter({8: 12})
    ),
    "slurm_topology/block_name_comment_duplicate.conf": lambda f: (
        len({one[f.levels[-1]] for one in f.positions.values()}) > 1
    ),
}


def _fabric(file: File, name: str) -> tuple[str, bool | None]:
    ledger = Ledger()
    found = topology.read(file, ledger)
    noted = [f"{entry.kind}: {entry.what}" for entry in ledger.entries() if entry.kind != "read"]
    text = f"levels {', '.join(found.levels) or 'none'}, {len(found.positions)} nodes; {'; '.join(noted)}"
    if name == "slurm_topology/topology_all_kinds.yaml":
        return text, all(any(kind in one for one in noted) for kind in ("ring", "torus3d"))
    judge = FABRICS.get(name)
    return text, None if judge is None else judge(found)


def _gres(file: File, name: str) -> tuple[str, bool | None]:
    ledger = Ledger()
    found = gres_conf.read(file, ledger)
    text = "; ".join(
        f"{node or 'every node'}: {', '.join(f'{one.name}:{one.type}:{one.count}' for one in some)}"
        for node, some in found.items()
    )
    if name == "slurm_gres/count_only_suffix.conf":
        return text, any(one.count == 4294967296 for some in found.values() for one in some)
    if name == "slurm_gres/commented_device.conf":
        paths = [path for some in found.values() for one in some for path in one.files]
        return text, sorted(path[-1] for path in paths) == ["0", "1", "3"]
    return text, None


def _objects(file: File, name: str, group: str) -> tuple[str, bool | None]:
    nodes = File("nodes", json.dumps(NODES).encode())
    found = (kueue if group == "kueue_objects" else volcano).read(Objects([nodes, file]), Ledger())
    text = f"{len(found.levels) + len(found.tiers)} levels, {len(found.queues)} queues, {len(found.gangs)} gangs"
    if name == "kueue_objects/tas_gpu_queues.yaml":
        quotas = [units.exact(amount) for queue in found.queues for amount in queue.quota.values()]
        return text, [level.label.rpartition("-")[2] for level in found.levels][:2] == [
            "block",
            "rack",
        ] and 16 in quotas
    return text, None


def rows(folder: Path) -> Iterator[Row]:
    """Yield a row for every file of the index that a reader is for."""
    for text in (folder / "index.jsonl").read_text("utf-8").splitlines():
        entry = json.loads(text)
        name = entry["file"]
        if name.partition("/")[0] in ("go_gpuallocator", "k8s_topology_manager", "kai", "hived") or name.endswith(
            ".md"
        ):
            continue
        if name == "mig/a100_40gb_layouts_by_search.json":
            continue
        found, what = outcome(folder, name, entry["kind"])
        yield {"file": name, "outcome": found, "what": what, "expected": entry["expected"]}


def main() -> None:
    """Run the benchmark, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="with index.jsonl")
    parser.add_argument("--output", type=Path, help="file for the rows as JSON")
    options = parser.parse_args()
    about = machine()
    found = []
    print(heading(COLUMNS))
    for row in rows(options.folder):
        found.append(row)
        print(line(COLUMNS, {**row, "what": str(row["what"])[:90]}))
    counted = Counter(str(row["outcome"]) for row in found)
    print(", ".join(f"{number} {what}" for what, number in counted.most_common()))
    write(options.output, machine=about, rows=found, counted=dict(counted))


if __name__ == "__main__":
    main()
