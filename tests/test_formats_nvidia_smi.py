"""nvidia-smi: lists, queries, tables and MIG instances, alone and beside a scheduler's view."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement.formats.nvidia_smi.read as smi
from placement.errors import InputError
from placement.formats.ledger import Ledger
from placement.formats.read import read
from placement.formats.source import File
from placement.snapshot import (
    Gpu,
    Job,
    MigInstance,
    Node,
    NumaZone,
    Running,
    RunningTask,
    Snapshot,
    Task,
    TaskGroup,
)
from placement.snapshot.read import verified

A100 = "NVIDIA A100-SXM4-40GB"
LABEL = "NVIDIA-A100-SXM4-40GB"
H100 = "NVIDIA H100 80GB HBM3"


def instance(number: int, memory: int, sm: int = 0, ofa: int = 0, compute: int = 0) -> str:
    shared = f"<shared><multiprocessor_count>{sm}</multiprocessor_count>"
    shared += "<decoder_count>0</decoder_count><encoder_count>0</encoder_count><jpg_count>0</jpg_count>"
    attributes = f"<device_attributes>{shared}<ofa_count>{ofa}</ofa_count></shared></device_attributes>" if sm else ""
    return (
        f"<mig_device><gpu_instance_id>{number}</gpu_instance_id><compute_instance_id>{compute}</compute_instance_id>"
        f"{attributes}<fb_memory_usage><total>{memory} MiB</total></fb_memory_usage></mig_device>"
    )


def process(number: str = "N/A", kind: str = "C") -> str:
    return (
        f"<process_info><gpu_instance_id>{number}</gpu_instance_id><pid>7</pid><type>{kind}</type>"
        "<process_name>python</process_name></process_info>"
    )


def card(
    index: int,
    product: str = A100,
    mig: str = "Disabled",
    pending: str = "",
    instances: str = "None",
    processes: str = "",
    more: str = "",
) -> str:
    return (
        f'<gpu id="0000:{index}"><product_name>{product}</product_name><mig_mode><current_mig>{mig}</current_mig>'
        f"<pending_mig>{pending or mig}</pending_mig></mig_mode><mig_devices>{instances}</mig_devices>"
        f"<uuid>GPU-{index}</uuid><fb_memory_usage><total>40960 MiB</total></fb_memory_usage>"
        f"<processes>{processes}</processes>{more}</gpu>"
    )


def xml(*cards: str) -> str:
    return (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>'
        f"<driver_version>535.129.03</driver_version><cuda_version>12.2</cuda_version>"
        f"<attached_gpus>{len(cards)}</attached_gpus>{''.join(cards)}</nvidia_smi_log>"
    )


def file(text: str, node: str = "", name: str = "smi.txt") -> File:
    return File(name, text.encode(), "nvidia-smi", node)


def one(*texts: str) -> tuple[Node, Snapshot, set[str]]:
    snapshot = read([file(text, name=f"{number}.txt") for number, text in enumerate(texts)])
    return snapshot.nodes[0], snapshot, {entry.what for entry in snapshot.ledger if entry.kind != "read"}


def layouts(node: Node) -> list[list[tuple[str, int]]]:
    return [[(one.profile, one.start) for one in gpu.mig_layout] for gpu in node.gpus for _ in range(gpu.count)]


LIST = f"""GPU 0: {A100} (UUID: GPU-0)
GPU 1: {A100} (UUID: GPU-1)
"""


# --- one output --------------------------------------------------------------------------------------------------


def test_a_list_of_cards_is_a_node() -> None:
    node, _, noted = one(LIST)
    assert node == Node(name="node", gpus=(Gpu(model=LABEL, count=2),), devices=("GPU-0", "GPU-1"))
    assert noted == {"what runs on cards"}


def test_compute_instances_of_a_list_are_gathered_to_gpu_instances() -> None:
    # 1c and 2c are the three slices of one 3g; another 1c cannot be in it
    names = ("1c.3g.20gb", "2c.3g.20gb", "1c.3g.20gb", "1g.5gb")
    devices = "".join(f"  MIG {name}  Device  {i}: (UUID: MIG-{i})\n" for i, name in enumerate(names))
    with pytest.raises(InputError, match="cannot exist together"):
        one(f"GPU 0: {A100} (UUID: GPU-0)\n{devices}")
    short = devices.replace("  MIG 1g.5gb  Device  3: (UUID: MIG-3)\n", "")
    node, _, noted = one(f"GPU 0: {A100} (UUID: GPU-0)\n{short}")
    assert layouts(node) == [[("3g.20gb", 0), ("3g.20gb", 4)]]
    assert "first slots of MIG instances" in noted


def test_a_query_says_models_memory_versions_and_what_is_in_use() -> None:
    node, snapshot, noted = one(xml(card(0), card(1, processes=process()), card(2, processes=process(kind="G"))))
    assert node == Node(
        name="node",
        driver="535.129.03",
        cuda="12.2",
        gpus=(Gpu(model=LABEL, count=3, memory="40960Mi"),),
        devices=("GPU-0", "GPU-1", "GPU-2"),
    )
    assert [job.name for job in snapshot.jobs] == ["nvidia-smi/node/gpu1"]
    assert snapshot.jobs[0].running == Running(tasks=(RunningTask(group="process", index=0, node="node", gpus=(1,)),))
    assert noted == {"job of the processes on a card"}


@pytest.mark.parametrize(
    "more",
    [
        "<remapped_rows><remapped_row_pending>Yes</remapped_row_pending></remapped_rows>",
        "<retired_pages><pending_retirement>Yes</pending_retirement></retired_pages>",
        "<gpu_recovery_action>Reset</gpu_recovery_action>",
        "<fan_speed>Unknown Error</fan_speed>",
        "<temperature><gpu_temp>GPU requires reset</gpu_temp></temperature>",
    ],
)
def test_cards_that_need_a_reset_are_unhealthy(more: str) -> None:
    node, _, _ = one(xml(card(0, more=more), card(1, more="<gpu_recovery_action>None</gpu_recovery_action>")))
    assert [gpu.health for gpu in node.gpus] == ["unhealthy", "healthy"]


def test_a_mode_that_is_pending_is_named() -> None:
    node, _, noted = one(xml(card(0, mig="Disabled", pending="Enabled")))
    assert not node.gpus[0].mig_enabled
    assert "MIG mode that is pending is not the current one" in noted


def test_memory_alone_says_profiles_where_all_can_exist_together() -> None:
    # 20, 10 and 5 GB: 4g + 2g + 1g are seven slices. 20, 10 and 10 GB: 4g + 2g + 2g would be eight, 3g + 2g + 2g are
    # seven, on memory slots 4 to 7, 0 to 1 and 2 to 3
    first = instance(1, 19968) + instance(5, 9856) + instance(13, 4864)
    second = instance(1, 19968) + instance(5, 9856) + instance(6, 9856)
    node, _, noted = one(xml(card(0, mig="Enabled", instances=first), card(1, mig="Enabled", instances=second)))
    assert layouts(node) == [
        [("4g.20gb", 0), ("2g.10gb", 4), ("1g.5gb", 6)],
        [("3g.20gb", 4), ("2g.10gb", 0), ("2g.10gb", 2)],
    ]
    assert noted == {"MIG profile of an instance", "first slots of MIG instances"}


def test_instances_that_cannot_exist_together_are_refused_by_card() -> None:
    many = instance(1, 19968) * 1 + instance(2, 19968) + instance(3, 9856)
    with pytest.raises(InputError) as raised:
        one(xml(card(0), card(1, mig="Enabled", instances=many)))
    assert "card 1" in str(raised.value)
    assert "cannot exist together" in str(raised.value)
    with pytest.raises(InputError, match="no MIG profile of 7777 MiB"):
        one(xml(card(0, mig="Enabled", instances=instance(1, 7777))))


def test_multiprocessors_tell_profiles_of_one_memory_apart() -> None:
    # on a card with 132: 3g has 60 and 4g 64; two compute instances of one GPU instance add up
    split = instance(2, 40448, sm=20) + instance(2, 40448, sm=40, compute=1) + instance(1, 20096, sm=26)
    node, _, _ = one(xml(card(0, product=H100, mig="Enabled", instances=split)))
    assert sorted(profile for profile, _ in layouts(node)[0]) == ["1g.20gb", "3g.40gb"]


def test_processes_on_an_instance_hold_that_instance() -> None:
    two = instance(1, 19968) + instance(5, 9856)
    busy = card(0, mig="Enabled", instances=two, processes=process("5"))
    _, snapshot, _ = one(xml(busy))
    (job,) = snapshot.jobs
    assert job.groups[0].task == Task(gpus=1, mig_profile="2g.10gb")
    assert job.running is not None
    assert job.running.tasks[0].mig_starts == (4,)
    # not said on which: all are in use
    _, snapshot, _ = one(xml(busy.replace("<gpu_instance_id>5</gpu_instance_id><pid>", "<pid>")))
    assert [group.task.mig_profile for group in snapshot.jobs[0].groups if group.task] == ["4g.20gb", "2g.10gb"]


def test_a_card_at_work_whose_instances_are_not_listed_is_held_as_a_whole() -> None:
    rows = "index, name, memory.used [MiB], mig.mode.current\n0, NVIDIA A100-SXM4-40GB, 20000 MiB, Enabled\n"
    _, snapshot, noted = one(rows)
    assert snapshot.jobs[0].groups[0].task == Task(gpus=1, mig_profile="7g.40gb")
    assert "MIG instances of a card" in noted


TEXT = f"""
==============NVSMI LOG==============

Timestamp                                 : Tue Jul 14 09:00:27 2026
Driver Version                            : 590.48.01
CUDA Version                              : 13.1

Attached GPUs                             : 1
GPU 00000000:00:09.0
    Product Name                          : {H100}
    MIG Mode
        Current                           : Enabled
        Pending                           : Enabled
    MIG Device
        Index                             : 0
        GPU Instance ID                   : 2
        Compute Instance ID               : 0
        Device Attributes
            Shared
                Multiprocessor count      : 60
        Shared FB Memory Usage
            Total                         : 40448 MiB
    MIG Device
        Index                             : 1
        GPU Instance ID                   : 9
        Compute Instance ID               : 0
        Device Attributes
            Shared
                Multiprocessor count      : 16
        Shared FB Memory Usage
            Total                         : 9984 MiB
    GPU UUID                              : GPU-7
    FB Memory Usage
        Total                             : 81559 MiB
    Remapped Rows
        Pending                           : No
    Processes
        GPU instance ID                   : 9
        Compute instance ID               : 0
        Process ID                        : 4242
            Type                          : C
            Name                          : python
"""


def test_the_text_says_what_the_xml_says() -> None:
    node, snapshot, _ = one(TEXT)
    assert node.gpus == (
        Gpu(
            model="NVIDIA-H100-80GB-HBM3",
            memory="81559Mi",
            mig_enabled=True,
            mig_layout=(MigInstance(profile="3g.40gb", start=0), MigInstance(profile="1g.10gb", start=4)),
        ),
    )
    assert (node.driver, node.devices) == ("590.48.01", ("GPU-7",))
    assert snapshot.jobs[0].groups[0].task == Task(gpus=1, mig_profile="1g.10gb")


def test_a_table_says_what_was_asked_for() -> None:
    head = "index, uuid, name, memory.total [MiB], memory.used [MiB], utilization.gpu [%], compute_cap\n"
    rows = "1, GPU-1, NVIDIA L40S, 46068 MiB, 30000 MiB, 0 %, 8.9\n0, GPU-0, NVIDIA L40S, 46068 MiB, 1 MiB, 0 %, 8.9\n"
    node, snapshot, _ = one(head + rows)
    assert node.gpus == (Gpu(model="NVIDIA-L40S", count=2, memory="46068Mi", compute_capability="8.9"),)
    assert node.devices == ("GPU-0", "GPU-1")
    assert [job.name for job in snapshot.jobs] == ["nvidia-smi/node/gpu1"]


# --- several outputs ---------------------------------------------------------------------------------------------

INSTANCES = """+-------------------------------------------------------+
| GPU instances:                                        |
| GPU   Name             Profile  Instance   Placement  |
|                          ID       ID       Start:Size |
|=======================================================|
|   0  MIG 2g.10gb         14        5          2:2     |
+-------------------------------------------------------+
|   0  MIG 3g.20gb          9        1          4:4     |
+-------------------------------------------------------+
"""


def test_the_list_of_instances_says_where_they_are() -> None:
    guessed = xml(card(0, mig="Enabled", instances=instance(1, 19968) + instance(5, 9856)), card(1))
    for texts in ((guessed, INSTANCES), (INSTANCES, guessed)):
        node, _, noted = one(*texts)
        assert layouts(node) == [[("2g.10gb", 2), ("3g.20gb", 4)], []]
        assert noted == set()


PROFILES = """| GPU instance profiles:                                                      |
| GPU   Name             ID    Instances   Memory     P2P    SM    DEC   ENC  |
|                              Free/Total   GiB              CE    JPEG  OFA  |
|=============================================================================|
|   0  MIG 1g.5gb        19     7/7        4.75       No     14     0     0   |
|                                                             1     0     0   |
|   0  MIG 2g.10gb       14     3/3        11.50      No     28     1     0   |
|                                                             2     0     0   |
|   0  MIG 1g.24gb+me.all65     1/1        23.12      No     46     4     0   |
"""


def test_profiles_are_compared_with_the_catalogue_and_are_no_cluster() -> None:
    with pytest.raises(InputError, match="nothing in it says which cards"):
        one(PROFILES)
    _, _, noted = one(LIST, PROFILES)
    assert noted == {
        "what runs on cards",
        "gigabytes in the name of a MIG profile are not those of its memory",
        "memory of a MIG profile",
        "MIG profile that the catalogue lacks for the card",
    }


def test_outputs_of_different_nodes_are_refused() -> None:
    with pytest.raises(InputError, match="give outputs of one node"):
        one(LIST, xml(card(0)))
    with pytest.raises(InputError, match="card 1 is another one"):
        one(LIST, xml(card(0), card(7)))


@pytest.mark.parametrize("head", ["gpu_uuid, pid, process_name, used_gpu_memory [MiB]", "pid, gpu_name, gpu_uuid"])
def test_a_list_of_processes_holds_their_cards_and_is_no_list_of_cards(head: str) -> None:
    row = {"gpu_uuid": "GPU-1", "pid": "7", "process_name": "python", "used_gpu_memory [MiB]": "9", "gpu_name": A100}
    # two processes on the second of two cards
    processes = head + 2 * ("\n" + ", ".join(row[key] for key in head.split(", ")))
    node, snapshot, noted = one(LIST, processes)
    assert node.gpus == (Gpu(model=LABEL, count=2),)
    assert [job.name for job in snapshot.jobs] == ["nvidia-smi/node/gpu1"]
    assert noted == {"job of the processes on a card"}
    _, snapshot, noted = one(LIST, head)
    assert (snapshot.jobs, noted) == ((), set())  # nothing runs, which is said and not assumed
    for texts in ([processes], [head], [processes, LIST.replace("GPU-1", "GPU-9")]):
        with pytest.raises(InputError, match="give what nvidia-smi -L prints"):
            one(*texts)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("pid, name, used_memory [MiB]\n7, python, 9 MiB\n", "does not say which card a process is on"),
        ("gpu_uuid, retired_pages.address\nGPU-1, 0x1\n", "its lines are not of cards"),
        ("gpu_name, gpu_uuid, memory [MHz]\nA, GPU-1, 1593\nA, GPU-1, 1500\n", "line 3: a card is listed twice"),
    ],
)
def test_queries_that_list_something_else_are_no_cards(text: str, what: str) -> None:
    with pytest.raises(InputError, match=what):
        one(text)


# --- beside a scheduler ------------------------------------------------------------------------------------------


def cluster(*nodes: Node, held: Mapping[str, tuple[int, ...]] | None = None) -> Snapshot:
    jobs = tuple(
        Job(
            name=f"job-{node}",
            groups=(TaskGroup(name="w", task=Task(gpus=len(cards))),),
            running=Running(tasks=(RunningTask(group="w", index=0, node=node, gpus=cards),)),
        )
        for node, cards in (held or {}).items()
    )
    return Snapshot(nodes=nodes, jobs=jobs)


def beside(snapshot: Snapshot, *files: File) -> tuple[Snapshot, set[str]]:
    ledger = Ledger()
    found = verified(smi.read(files, snapshot, ledger))
    return found, {entry.what for entry in ledger.entries() if entry.kind != "read"}


PAIR = (
    "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV2\t0-7\t0\nGPU1\tNV2\t X \t8-15\t1\n\n"
    "  X = Self\n  NV# = NVLinks\n"
)
TWO = Node(name="n1", gpus=(Gpu(model=LABEL, count=2),))


def test_a_card_at_work_that_the_scheduler_believes_free_is_held() -> None:
    busy = file(xml(card(0, processes=process()), card(1, processes=process())), "n1")
    found, noted = beside(cluster(TWO, held={"n1": (0,)}), busy)
    assert [job.name for job in found.jobs] == ["job-n1", "nvidia-smi/n1/gpu1"]
    assert noted == {"card at work that the scheduler believes to be free"}


def test_a_pattern_gives_all_nodes_links_and_zones_and_no_names() -> None:
    nodes = (TWO, Node(name="n2", gpus=TWO.gpus), Node(name="m", gpus=TWO.gpus))
    found, noted = beside(cluster(*nodes), file(PAIR, "n*"), file(LIST, "n1"))
    assert [len(node.links) for node in found.nodes] == [1, 1, 0]
    assert [node.devices for node in found.nodes] == [("GPU-0", "GPU-1"), (), ()]
    assert noted == set()
    found, noted = beside(cluster(*nodes), file(xml(card(0, processes=process()), card(1)), "n*"))
    assert found.jobs == ()
    assert noted == {"UUIDs of cards", "processes on cards"}
    found, noted = beside(cluster(*nodes), file(xml(card(0, mig="Enabled"), card(1)), "n*"))
    assert not found.nodes[0].gpus[0].mig_enabled
    assert noted == {"UUIDs of cards", "MIG mode and health of cards"}


@pytest.mark.parametrize("pattern", ["n[1-12]", "n[1,11-12]", "n*", "n1,n[2-12]x"])
def test_a_list_of_nodes_as_slurm_writes_it_is_no_set_of_letters(pattern: str) -> None:
    """As a pattern of file names n[1-12] would be n1 and n2 alone."""
    nodes = (TWO, Node(name="n11", gpus=TWO.gpus), Node(name="n12", gpus=TWO.gpus), Node(name="m3", gpus=TWO.gpus))
    found, _ = beside(cluster(*nodes), file(PAIR, pattern))
    linked = [bool(node.links) for node in found.nodes]
    assert linked == ([True, False, False, False] if pattern.endswith("x") else [True, True, True, False])


@pytest.mark.parametrize(
    ("mine", "product", "same"),
    [
        ("a100", A100, True),
        ("a100_40gb", "NVIDIA A100 40GB PCIe", True),
        ("h100", "NVIDIA H100 NVL", True),
        ("gpu", A100, True),
        (LABEL, A100, True),
        ("a100", H100, False),
        ("h100", A100, False),
        ("NVIDIA-A100-SXM4-80GB", A100, False),
    ],
)
def test_a_type_of_slurm_is_part_of_the_name_of_the_product(mine: str, product: str, same: bool) -> None:
    there = Node(name="n1", gpus=(Gpu(model=mine, count=1),))
    found, noted = beside(cluster(there), file(xml(card(0, product)), "n1"))
    assert [gpu.model for gpu in found.nodes[0].gpus] == [mine]
    assert noted == (set() if same else {"model of a card"})


def test_a_counted_entry_goes_by_its_own_name() -> None:
    found, _ = beside(cluster(Node(name="n", count=3, gpus=TWO.gpus)), file(PAIR, "n"))
    assert len(found.nodes[0].links) == 1
    assert len(found.nodes[0].zones) == 2


def test_without_a_name_it_is_the_only_node_with_cards() -> None:
    found, _ = beside(cluster(Node(name="cpu"), TWO), file(PAIR))
    assert len(found.nodes[1].links) == 1
    with pytest.raises(InputError, match="NODE=FILE"):
        beside(cluster(TWO, Node(name="n2", gpus=TWO.gpus)), file(PAIR))
    with pytest.raises(InputError, match='no node is called "x"'):
        beside(cluster(TWO), file(PAIR, "x"))
    with pytest.raises(InputError, match="is a pattern"):
        read([file(PAIR, "n*")])


def test_zones_that_are_known_keep_their_cpu_and_get_cards() -> None:
    zones = (NumaZone(id=0, cpu=4, gpus=(0, 1)), NumaZone(id=1, cpu=4))
    node = Node(name="n1", cpu=8, gpus=TWO.gpus, zones=zones)
    found, noted = beside(cluster(node), file(PAIR))
    assert found.nodes[0].zones == (
        NumaZone(id=0, cpus="0-7", cpu=4, gpus=(0,)),
        NumaZone(id=1, cpus="8-15", cpu=4, gpus=(1,)),
    )
    assert noted == {"cards of NUMA zones"}
    other = Node(name="n1", gpus=TWO.gpus, zones=(NumaZone(id=5, gpus=(0, 1)),))
    found, noted = beside(cluster(other), file(PAIR))
    assert found.nodes[0].zones == other.zones
    assert noted == {"numbers of NUMA zones of a node"}


def test_another_number_of_cards_or_another_model_is_named() -> None:
    found, noted = beside(cluster(Node(name="n1", gpus=(Gpu(model=LABEL),))), file(LIST))
    assert found.nodes[0].devices == ()
    assert noted == {"number of cards of a node"}
    found, noted = beside(cluster(Node(name="n1", gpus=(Gpu(model="NVIDIA-L4", count=2),))), file(LIST))
    assert found.nodes[0].gpus[0].model == "NVIDIA-L4"
    assert noted == {"model of a card"}


def test_mig_mode_is_taken_over_unless_a_task_has_the_whole_card() -> None:
    on = file(xml(card(0, mig="Enabled", instances=instance(1, 9856)), card(1)), "n1")
    found, _ = beside(cluster(TWO), on)
    assert [gpu.mig_enabled for gpu in found.nodes[0].gpus] == [True, False]
    found, noted = beside(cluster(TWO, held={"n1": (0,)}), on)
    assert not found.nodes[0].gpus[0].mig_enabled
    assert "MIG mode of a card on which a task holds the whole" in noted


def test_a_card_with_mig_of_an_unknown_model_takes_no_work() -> None:
    node, _, noted = one(xml(card(0, product="NVIDIA X1000", mig="Enabled", instances=instance(1, 9856))))
    assert node.gpus[0].health == "unhealthy"
    assert "MIG instances of a card model that the catalogue lacks" in noted


# --- damage ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("hello\n", "it is no output of nvidia-smi that is known"),
        (xml(card(0))[:-20], "not XML"),
        (xml(card(0)).replace("<attached_gpus>1<", "<attached_gpus>8<"), "lists 1 cards and says that there are 8"),
        (xml(card(0)).replace("40960 MiB", "lots1"), "'lots1' is no memory such as 81559 MiB"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><nvidia_smi_log>&b;</nvidia_smi_log>', "what nvidia-smi does not print"),
        (LIST.replace("GPU 1", "GPU 3"), "card 1 is not listed, and later ones are"),
        (LIST.replace("GPU 1", "GPU 0"), "card 0 is listed twice"),
        (LIST + "Unable to determine the device handle for GPU2: Unknown Error\n", "line 3: a card does not answer"),
        ("index, name\n0\n", "line 2: 1 fields, expected 2"),
        ("index, name\nx, A\n", "line 2: 'x' is no index of a card"),
        (INSTANCES.replace("2:2", "2"), "line 6: the row is damaged"),
        ("| Compute instances: |\n|   0      7       MIG 1g.5gb   0   0   0:1 |\n", "nothing in it says which cards"),
        ("| NVIDIA-SMI 590.48.01   Driver Version: 590.48.01 |\n", "it is no output of nvidia-smi that is known"),
    ],
)
def test_damage_is_one_error_with_its_place(text: str, what: str) -> None:
    with pytest.raises(InputError) as raised:
        one(text)
    assert what in str(raised.value)


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from([LIST, INSTANCES, TEXT, xml(card(0, mig="Enabled", instances=instance(1, 9856)), card(1))]),
    st.floats(0, 1),
    st.integers(0, 30),
    st.text(max_size=4),
)
def test_no_damage_ends_otherwise_than_in_a_snapshot_or_an_error(
    text: str, where: float, length: int, other: str
) -> None:
    start = int(where * len(text))
    damaged = text[:start] + other + text[start + length :]
    with contextlib.suppress(InputError):
        read([File("smi.txt", damaged.encode("utf-8", "replace"), "nvidia-smi")])
