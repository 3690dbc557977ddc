"""The fabric and the devices that Slurm's configuration files describe."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.errors import InputError
from placement.formats.ledger import Ledger
from placement.formats.slurm import gres_conf, topology
from placement.formats.slurm.fabric import Fabric
from placement.formats.source import File


def read(content: str, ledger: Ledger | None = None) -> Fabric:
    assert topology.looks_like(content.encode())
    return topology.read(File("topology", content.encode()), Ledger() if ledger is None else ledger)


def entries(ledger: Ledger, kind: str) -> list[tuple[str, int]]:
    return [(entry.what, entry.count) for entry in ledger.entries() if entry.kind == kind]


# --- trees ---------------------------------------------------------------------------------------------------

TREE = """
# spine=building-1
SwitchName=spine Switches=leaf.[9-10]   # not padded
switchname=leaf.9 NODES=n[08-09]
SwitchName=leaf.10 LinkSpeed=100 \\
    Nodes=n10,n11
"""


def test_a_tree() -> None:
    ledger = Ledger()
    fabric = read(TREE, ledger)
    assert fabric.levels == ("switch-2", "switch")
    assert fabric.positions == {
        "n08": {"switch-2": "spine", "switch": "leaf.9"},
        "n09": {"switch-2": "spine", "switch": "leaf.9"},
        "n10": {"switch-2": "spine", "switch": "leaf.10"},
        "n11": {"switch-2": "spine", "switch": "leaf.10"},
    }
    assert not fabric.apart
    assert entries(ledger, "ignored") == [("LinkSpeed", 1)]
    assert entries(ledger, "read") == [("nodes with a place in the fabric", 4)]


def test_unequal_depth_is_aligned_from_the_leaves() -> None:
    """core is three levels up by way of spine, and one above near, which stands for itself between."""
    fabric = read(
        "SwitchName=core Switches=spine,near\nSwitchName=spine Switches=far\nSwitchName=far Nodes=a\n"
        "SwitchName=near Nodes=b"
    )
    assert fabric.levels == ("switch-3", "switch-2", "switch")
    assert fabric.positions["a"] == {"switch-3": "core", "switch-2": "spine", "switch": "far"}
    assert fabric.positions["b"] == {"switch-3": "core", "switch-2": "near", "switch": "near"}


def test_a_forest_and_nodes_outside() -> None:
    ledger = Ledger()
    fabric = read(
        "SwitchName=r1 Switches=s1\nSwitchName=s1 Nodes=a\nSwitchName=r2 Nodes=b\nSwitchName=no-topology Nodes=c,d",
        ledger,
    )
    assert fabric.positions == {"a": {"switch-2": "r1", "switch": "s1"}, "b": {"switch-2": "r2", "switch": "r2"}}
    assert fabric.apart
    assert entries(ledger, "assumed") == [("nodes of the switch no-topology", 2), ("a fabric of several trees", 1)]


def test_only_nodes_outside() -> None:
    assert read("SwitchName=no-topology Nodes=a") == Fabric()


def test_switches_without_nodes_are_levels() -> None:
    assert read("SwitchName=a Switches=b\nSwitchName=b") == Fabric(("switch-2", "switch"), {})


def test_a_node_on_two_switches_is_on_the_first() -> None:
    ledger = Ledger()
    fabric = read("SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[2-3]", ledger)
    assert [fabric.positions[f"n{k}"]["switch"] for k in (1, 2, 3)] == ["a", "a", "b"]
    assert entries(ledger, "contradiction") == [("a node in two places of the fabric", 1)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2", 'line 2: the switch "a" is there twice, first at line 1'),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a", 'line 1: the switch "a" is above itself'),
        ("SwitchName=a Switches=a", 'line 1: the switch "a" is above itself'),
        ("SwitchName=a Switches=b", 'line 1: the switch "b" is not in the file'),
        ("SwitchName=a Nodes=n1 Switches=b\nSwitchName=b", 'line 1: the switch "a" has nodes and switches'),
        (
            "SwitchName=a Switches=c\nSwitchName=b Switches=c\nSwitchName=c",
            'line 2: the switch "c" is below both "a" and "b"',
        ),
        ("SwitchName=a Nodes=n[1-", "line 1: a bracket that is not closed"),
        ("SwitchName=a Nodes=n[1-999999999]", "line 1: more than 1,000,000 hosts"),
        ("SwitchName=a Nodes=x nonsense", 'line 1: "nonsense" is not Key=value'),
        ("SwitchName=a Nodes=x Nodes=y", "line 1: Nodes is given twice"),
        ("SwitchName=a Nodes=x\ninclude other.conf", "line 2: the line includes another file"),
        ("SwitchName=a Nodes=x\nBlockName=b Nodes=y", "switches and blocks in one file"),
        ("SwitchName= Nodes=x", 'line 1: "" is no name of a switch'),
        (
            "\n".join(["SwitchName=s16 Nodes=n", *(f"SwitchName=s{k} Switches=s{k + 1}" for k in range(16))]),
            "17 levels",
        ),
        ("BlockName=b Nodes=x\nBlockSizes=2,6", "line 2: the block size 6 is not 2 times a power of two"),
        ("BlockName=b Nodes=x\nBlockSizes=2,2", "line 2: the block sizes do not increase"),
        ("BlockName=b Nodes=x\nBlockSizes=0", "line 2: the block sizes do not increase from 1"),
        ("BlockName=b Nodes=x\nBlockSizes=many", 'line 2: found "many", expected numbers'),
        ("BlockName=b Nodes=x\nBlockSizes=1\nBlockSizes=2", "line 3: BlockSizes is there twice, first at line 2"),
        ("BlockName=b Nodes=x\nBlockName=b Nodes=y", 'line 2: the block "b" is there twice'),
    ],
)
def test_damaged_topology_conf(content: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(content)
    assert message in str(caught.value)


def test_a_deep_chain_is_refused_without_recursion() -> None:
    chain = "\n".join(f"SwitchName=s{k} Switches=s{k + 1}" for k in range(5000))
    with pytest.raises(InputError, match="5001 levels"):
        read(f"{chain}\nSwitchName=s5000 Nodes=n")


@given(st.recursive(st.just([]), lambda below: st.lists(below, min_size=1, max_size=3), max_leaves=12))
def test_any_tree_has_nested_levels(shape: list[object]) -> None:
    """Every leaf switch has one node; two nodes that share a domain share all wider ones, and the root last of all."""
    lines: list[str] = []

    def add(name: str, below: list[object]) -> int:
        children = [f"{name}.{index}" for index in range(len(below))]
        lines.append(f"SwitchName={name} " + (f"Switches={','.join(children)}" if children else f"Nodes=node-{name}"))
        return 1 + max((add(*pair) for pair in zip(children, below, strict=True)), default=0)  # type: ignore[arg-type]

    depth = add("r", shape)
    fabric = read("\n".join(lines))
    assert len(fabric.levels) == depth
    assert {position[fabric.levels[0]] for position in fabric.positions.values()} == {"r"}
    for node, position in fabric.positions.items():
        assert position["switch"] == node.removeprefix("node-")
        for wide, narrow in zip(fabric.levels, fabric.levels[1:], strict=False):
            assert position[narrow].startswith(position[wide])


# --- blocks --------------------------------------------------------------------------------------------------


def test_blocks_are_put_together_in_their_order() -> None:
    """Sizes 2, 4 and 8 are 1, 2 and 4 blocks; the third pair has but one block."""
    fabric = read(
        "# b1=B2\nBlockName=b1 Nodes=n[1-2]\n# b2=B2\nBlockName=b2 Nodes=n[3-4]\nBlockName=b3 Nodes=n[5-6]\n"
        "BlockName=b4 Nodes=n[7-8]\nBlockName=b5 Nodes=n[9-10]\nBlockSizes=2,4,8"
    )
    assert fabric.levels == ("block-x4", "block-x2", "block")
    assert fabric.positions["n1"] == {"block-x4": "b[1-4]", "block-x2": "b[1-2]", "block": "b1"}
    assert fabric.positions["n8"] == {"block-x4": "b[1-4]", "block-x2": "b[3-4]", "block": "b4"}
    assert fabric.positions["n9"] == {"block-x4": "b5", "block-x2": "b5", "block": "b5"}


def test_blocks_without_nodes_count_in_the_order() -> None:
    """b2 is empty and b3 short of the smallest size; both are contradictions, and b3 is with b4 all the same."""
    ledger = Ledger()
    fabric = read(
        "- topology: t\n  block:\n    block_sizes: [2, 4]\n    blocks:\n"
        "    - {block: b1, nodes: 'n[1-2]'}\n    - {block: b2}\n    - {block: b3, nodes: n3}\n"
        "    - {block: b4, nodes: 'n[4-5]'}\n",
        ledger,
    )
    assert fabric.positions["n1"] == {"block-x2": "b[1-2]", "block": "b1"}
    assert fabric.positions["n3"] == {"block-x2": "b[3-4]", "block": "b3"}
    assert entries(ledger, "contradiction") == [("a block with fewer nodes than the smallest block size", 2)]


def test_blocks_without_sizes() -> None:
    ledger = Ledger()
    assert read("BlockName=b1 Nodes=n1", ledger) == Fabric(("block",), {"n1": {"block": "b1"}})
    assert entries(ledger, "assumed") == [("no block sizes", 1)]


# --- topology.yaml -------------------------------------------------------------------------------------------

TWO = """
- topology: first
  cluster_default: {first}
  tree: {{switches: [{{switch: a, children: b}}, {{switch: b, nodes: 'n[1-2]'}}]}}
- topology: second
  cluster_default: {second}
  {kind}: {rest}
"""


def test_the_default_of_several() -> None:
    ledger = Ledger()
    found = read(TWO.format(first="true", second="false", kind="ring", rest="{rings: []}"), ledger)
    assert found.positions["n2"] == {"switch-2": "a", "switch": "b"}
    assert entries(ledger, "ignored") == [("a topology that is not the cluster's default (ring)", 1)]
    ledger = Ledger()
    assert read(TWO.format(first="false", second="true", kind="flat", rest="true"), ledger) == Fabric()
    assert entries(ledger, "ignored") == [("a topology that is not the cluster's default (tree)", 1)]
    ledger = Ledger()
    assert read(TWO.format(first="false", second="true", kind="flat", rest="{alpha_step_rank: true}")) == Fabric()


def test_no_default_or_two() -> None:
    for said, kind in (("false", "assumed"), ("true", "contradiction")):
        ledger = Ledger()
        found = read(TWO.format(first=said, second=said, kind="flat", rest="true"), ledger)
        assert found.levels == ("switch-2", "switch")
        assert any(count == 1 for _, count in entries(ledger, kind))


@pytest.mark.parametrize("kind", ["ring", "torus3d"])
def test_rings_and_tori_are_named(kind: str) -> None:
    content = TWO.format(first="false", second="true", kind=kind, rest="{}")
    ledger = Ledger()
    assert read(content, ledger) == Fabric()
    assert (f"the cluster's topology ({kind})", 1) in entries(ledger, "ignored")
    with pytest.raises(InputError, match=kind):
        read(content, Ledger(strict=True))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- topology: t\n  flat: true\n- topology: t\n  flat: true", '[1]: the topology "t" is there twice'),
        ("- topology: t", "[0]: the topology is nothing"),
        ("- topology: t\n  flat: true\n  tree: {}", "[0]: the topology is tree and flat"),
        ("- topology: t\n  tree: {switches: [{switch: 1}]}", "[0].tree.switches[0].switch: Expected str, got int"),
        ("- topology: t\n  tree: {switches: [{switch: a, nodes: 'x['}]}", "[0].tree.switches[0]: a bracket"),
        ("- topology: t\n  block: {block_sizes: [x]}", "[0].block.block_sizes[0]: Expected int, got str"),
        ("- topology: t\n  flat: true\n---\n- topology: u\n  flat: true", "2 documents"),
        ("switches:\n  core: {switches: [a]}\nblocks: []", "this is a model of a fabric"),
    ],
)
def test_damaged_topology_yaml(content: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(content)
    assert message in str(caught.value)


# --- gres.conf -----------------------------------------------------------------------------------------------


def gres(content: str, ledger: Ledger | None = None) -> dict[str, tuple[gres_conf.GresLine, ...]]:
    assert gres_conf.looks_like(content.encode())
    assert not topology.looks_like(content.encode())
    return gres_conf.read(File("gres.conf", content.encode()), Ledger() if ledger is None else ledger)


def test_a_hole_in_the_numbers() -> None:
    """Cards 0 and 1 of one line, 3 of another; 2 is commented out."""
    found = gres(
        "Name=gpu Type=a File=/dev/nvidia[0-1] COREs=0-15\n#Name=gpu Type=a File=/dev/nvidia2\n"
        "Name=gpu Type=a File=/dev/nvidia3 Cores=16-31 Links=0,0,-1 Flags=nvidia_gpu_env,one_sharing\n"
    )[gres_conf.ALL_NODES]
    assert [line.indices for line in found] == [(0, 1), (3,)]
    assert [(line.cores, line.links, line.where) for line in found] == [
        ("0-15", "", "line 1"),
        ("16-31", "0,0,-1", "line 3"),
    ]
    assert found[1].flags == ("nvidia_gpu_env", "one_sharing")
    assert gres_conf.cards(found) == 3


def test_shares_are_no_cards() -> None:
    found = gres(
        "NodeName=n[1-2] Name=gpu Type=a File=/dev/nvidia0\nNodeName=n[1-2] Name=gpu Type=b File=/dev/nvidia1\n"
        "NodeName=n1 Name=mps Count=100 File=/dev/nvidia0\nNodeName=n1 Name=shard Count=8 File=/dev/nvidia1\n"
    )
    assert {node: gres_conf.cards(there) for node, there in found.items()} == {"n1": 2, "n2": 2}
    assert [(line.name, line.count) for line in found["n1"]] == [("gpu", 1), ("gpu", 1), ("mps", 100), ("shard", 8)]


def test_instances_of_a_card_have_its_device_together() -> None:
    found = gres(
        "Name=gpu Type=1g.5gb MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap[66-67]\n"
        "Name=gpu Type=1g.5gb MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap[75-76]\n"
    )[gres_conf.ALL_NODES]
    assert [(line.count, line.together, line.indices) for line in found] == [(1, True, ()), (1, True, ())]
    assert gres_conf.cards(found) == 2


def test_shares_of_what_is_no_card() -> None:
    ledger = Ledger()
    gres("Name=gpu File=/dev/nvidia0\nName=mps Count=100 File=/dev/nvidia1", ledger)
    assert entries(ledger, "contradiction") == [("shares of devices that no line of cards lists", 1)]


def test_autodetect_alone_says_no_number() -> None:
    ledger = Ledger()
    found = gres("NodeName=n[0-1] AutoDetect=nvml\nNodeName=n2 Name=gpu Count=4\nNodeName=n3 AutoDetect=off", ledger)
    assert {node: gres_conf.cards(there) for node, there in found.items()} == {"n0": None, "n1": None, "n2": 4, "n3": 0}
    assert ("AutoDetect", 2) in entries(ledger, "assumed")


def test_cores_beyond_those_of_the_node() -> None:
    """Cores of 128 are 0 to 127; 176 to 191 are threads of 48 to 63, as nvidia-smi shows them."""
    (line,) = gres("NodeName=n Name=gpu File=/dev/nvidia0 Cores=48-63,176-191")["n"]
    assert [gres_conf.beyond(line, cores) for cores in (128, 191, 192)] == [191, 191, None]


@pytest.mark.parametrize(("text", "count"), [("4", 4), ("4k", 4096), ("4K", 4096), ("4G", 4294967296), ("1T", 2**40)])
def test_suffixes_of_counts(text: str, count: int) -> None:
    found = gres(f"NodeName=n Name=bandwidth Type=lustre Count={text} Flags=CountOnly")
    assert [line.count for line in found["n"]] == [count]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("Name=gpu Count=3 File=/dev/nvidia[0-3]", "line 1: Count is 3, and File lists 4 devices"),
        ("Name=gpu Count=-1", 'line 1: found "-1", expected a number'),
        ("Name=gpu Count=1e9", 'line 1: found "1e9", expected a number'),
        ("Name=gpu File=/dev/nvidia0\nName=gpu File=/dev/nvidia[0-1]", 'line 2: the device "/dev/nvidia0" is there'),
        ("Name=gpu Cores=0-x", 'line 1: "0-x" is no number or range'),
        ("Name=gpu File=/dev/nvidia[0,0]", "line 1: a device is there twice in one list"),
        ("Name=gpu File=/dev/nvidia0 MultipleFiles=/dev/nvidia1", "line 1: the line has File and MultipleFiles"),
        ("Name=gpu\nNodeName=n Count=2", "line 2: the line has neither Name nor AutoDetect"),
    ],
)
def test_damaged_gres_conf(content: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        gres(content)
    assert message in str(caught.value)
