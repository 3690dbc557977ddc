"""``nvidia-smi topo -m``: matrices as they are printed, pasted and cut."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.errors import InputError
from placement.formats.ledger import Ledger
from placement.formats.nvidia_smi import topology, zones
from placement.formats.read import read
from placement.formats.source import File
from placement.snapshot import Link, Nic, NumaZone, PcieSwitch

LEGEND = """
Legend:

  X    = Self
  SYS  = crosses sockets
  PIX  = one bridge
"""
NVLINK = "  NV#  = so many NVLinks\n"

KINDS = [
    # GPU0, GPU1 | GPU2, GPU3 on two sockets; NIC0 beside GPU0, NIC1 in socket 1, NIC2 near nothing
    ["X", "NV4", "SYS", "SYS", "PIX", "SYS", "SYS"],
    ["NV4", "X", "SYS", "SYS", "NODE", "SYS", "SYS"],
    ["SYS", "SYS", "X", "PHB", "SYS", "NODE", "SYS"],
    ["SYS", "SYS", "PHB", "X", "SYS", "NODE", "SYS"],
    ["PIX", "NODE", "SYS", "SYS", "X", "SYS", "SYS"],
    ["SYS", "SYS", "NODE", "NODE", "SYS", "X", "SYS"],
    ["SYS", "SYS", "SYS", "SYS", "SYS", "SYS", "X"],
]
NAMES = ["GPU0", "GPU1", "GPU2", "GPU3", "NIC0", "NIC1", "NIC2"]
CPUS = ["0-7,16-23", "0-7,16-23", "8-15,24-31", "8-15,24-31"]
NUMA = ["0", "0", "1", "1"]


def matrix(
    kinds: Sequence[Sequence[str]] = KINDS,
    names: Sequence[str] = NAMES,
    cpus: Sequence[str] = CPUS,
    numa: Sequence[str] | None = NUMA,
    tab: str = "\t",
    legend: str = LEGEND + NVLINK,
    ansi: bool = False,
) -> str:
    affinity = ["CPU Affinity"] if numa is None else ["CPU Affinity", "NUMA Affinity", "GPU NUMA ID"]
    header = tab.join([*names, *affinity])
    lines = [f"\t\x1b[4m{header}\x1b[0m" if ansi else f"\t{header}"]
    for row, (name, cells) in enumerate(zip(names, kinds, strict=True)):
        tail = [""] * 4
        if name.startswith("GPU"):
            # NUMA is followed by two tabs
            tail = [cpus[row]] if numa is None else [cpus[row], numa[row], "", "N/A"]
        lines.append(tab.join([name, *(" X " if cell == "X" else cell for cell in cells), *tail]))
    return "\n".join(lines) + "\n" + legend


def of(text: str) -> topology.Matrix:
    return topology.read(File("topo.txt", text.encode()))


def zones_of(text: str) -> tuple[tuple[NumaZone, ...], set[str]]:
    ledger = Ledger()
    found = zones.zones(of(text), "topo.txt", ledger)
    return found, {entry.what for entry in ledger.entries()}


def links_of(text: str) -> tuple[tuple[Link, ...], set[str]]:
    ledger = Ledger()
    found = zones.links(of(text), "topo.txt", ledger)
    return found, {entry.what for entry in ledger.entries()}


LINKS = (
    Link(a=0, b=1, kind="NVLINK", width=4),
    Link(a=0, b=2, kind="SYS"),
    Link(a=0, b=3, kind="SYS"),
    Link(a=1, b=2, kind="SYS"),
    Link(a=1, b=3, kind="SYS"),
    Link(a=2, b=3, kind="PHB"),
)


@pytest.mark.parametrize(
    "text",
    [
        matrix(),
        matrix(ansi=True),
        matrix().replace("\n", "\r\n"),
        # expanded by a terminal: columns of rows and header do not line up
        re.sub(r"\t+", "    ", matrix()),
        # the header by blanks and the rows by tabs
        matrix().replace("\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1", "        GPU0 GPU1 GPU2 GPU3 NIC0 NIC1", 1),
        # names of cards run together
        matrix().replace("\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0", "\t    GPU0GPU1GPU2GPU3NIC0", 1),
        # rows without the empty cells at their ends
        "\n".join(line.rstrip() for line in matrix().split("\n")),
        # an older driver's word
        matrix().replace("SYS", "SOC"),
    ],
)
def test_one_machine_however_it_is_printed(text: str) -> None:
    assert links_of(text) == (LINKS, set())
    found, noted = zones_of(text)
    nic0, nic1 = Nic(name="NIC0"), Nic(name="NIC1")
    assert found == (
        NumaZone(
            id=0,
            cpus="0-7,16-23",
            gpus=(0, 1),
            nics=(nic0,),
            switches=(PcieSwitch(name="pcie0", gpus=(0,), nics=("NIC0",)),),
        ),
        NumaZone(id=1, cpus="8-15,24-31", gpus=(2, 3), nics=(nic1,)),
    )
    assert noted == {"names of NICs", "NIC near no card"}


def test_nics_are_called_what_the_legend_calls_them() -> None:
    found, noted = zones_of(matrix() + "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: rocep13s0\n  NIC2: mlx5_9\n")
    assert [nic.name for zone in found for nic in zone.nics] == ["mlx5_0", "rocep13s0"]
    assert found[0].switches[0].nics == ("mlx5_0",)
    assert noted == {"NIC near no card"}


def test_a_nic_near_no_card_is_in_the_zone_that_its_row_says() -> None:
    text = matrix().replace("\tSYS\tSYS\t X \t\t\t\t", "\tSYS\tSYS\t X \t\t1\t\t")
    assert [nic.name for nic in zones_of(text)[0][1].nics] == ["NIC1", "NIC2"]


def test_zones_are_numbered_as_the_column_says_and_need_not_follow_the_cards() -> None:
    found, _ = zones_of(matrix(numa=["7", "7", "3", "3"]))
    assert [(zone.id, zone.gpus) for zone in found] == [(3, (2, 3)), (7, (0, 1))]


def test_empty_cpus_do_not_shift_the_zones() -> None:
    # in a container of few CPUs; with tabs, and with blanks
    text = matrix(cpus=["0-7", "0-7", "", ""])
    for one in (text, re.sub(r"\t+", "    ", text)):
        found, _ = zones_of(one)
        assert [(zone.id, zone.cpus, zone.gpus) for zone in found] == [(0, "0-7", (0, 1)), (1, "", (2, 3))]


def test_a_cell_to_the_right_of_empty_cpus_is_the_zone() -> None:
    """One number in two columns: with tabs written as blanks it begins a tab further to the right, or more."""
    lines = ["\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity", "GPU0\t X \tPHB\t\t1", "GPU1\tPHB\t X \t5\t\t1"]
    found = of("\n".join(line.expandtabs() for line in lines))
    assert (found.cpus, found.numa) == (("", "5"), ("1", "1"))


@pytest.mark.parametrize("empty", ["", "N/A"])
@pytest.mark.parametrize("numa", [None, ["N/A"] * 4])
def test_cards_without_cpus_beside_others_are_no_zone_of_their_own(numa: list[str] | None, empty: str) -> None:
    """The path tells where cards 1 and 3 are; where NVLink hides it, no zone is made up."""
    cpus = ["0-7", empty, "8-15", empty]
    found, _ = zones_of(
        matrix([["PIX" if cell == "NV4" else cell for cell in row] for row in KINDS], numa=numa, cpus=cpus)
    )
    assert [zone.gpus for zone in found] == [(0, 1), (2, 3)]
    hidden = [["X" if row == column else "NV4" for column in range(4)] for row in range(4)]
    found, noted = zones_of(matrix(hidden, NAMES[:4], cpus, numa))
    assert found == ()
    assert "NUMA zones" in noted


def test_lists_of_single_cpus_are_cut_and_not_believed() -> None:
    found, noted = zones_of(matrix(cpus=["0,2,4,6,8,10"] * 2 + ["1,3,5,7,9,11"] * 2))
    assert [(zone.id, zone.cpus, zone.gpus) for zone in found] == [(0, "", (0, 1)), (1, "", (2, 3))]
    assert "CPU lists that may be cut" in noted


def test_without_numbers_of_zones_the_cpus_tell_them_apart() -> None:
    found, noted = zones_of(matrix(numa=None))
    assert [(zone.id, zone.gpus) for zone in found] == [(0, (0, 1)), (1, (2, 3))]
    assert "numbers of NUMA zones" in noted


def test_without_numbers_and_cpus_what_is_near_what_tells_them_apart() -> None:
    # all tasks are bound to CPU 1, so that the column says nothing of the cards
    found, noted = zones_of(matrix(numa=None, cpus=["1-1"] * 4))
    assert [(zone.id, zone.cpus, zone.gpus) for zone in found] == [(0, "", (0, 1)), (1, "", (2, 3))]
    assert {"numbers of NUMA zones", "CPU lists of zones"} <= noted
    # all cards far from one another: each could be alone
    far = [["X" if a == b else "NV1" if a + b == 1 else "SYS" for b in range(3)] for a in range(3)]
    assert zones_of(matrix(far, NAMES[:3], ["0-3"] * 3, None)) == ((), {"NUMA zones"})


def test_a_machine_without_zones_has_one() -> None:
    pair = [["X", "NV2"], ["NV2", "X"]]
    for cpus, numa in ((["0-23"] * 2, ["N/A"] * 2), ([""] * 2, [""] * 2)):
        found, noted = zones_of(matrix(pair, NAMES[:2], cpus, numa, legend=""))
        assert [(zone.id, zone.gpus) for zone in found] == [(0, (0, 1))]
        assert noted == {"NUMA zones"}


def test_a_card_of_several_zones_leaves_them_unknown() -> None:
    assert zones_of(matrix(numa=["0-1", "0-1", "1", "1"])) == ((), {"NUMA zones"})


def test_nvlink_that_is_not_shown_is_not_taken_for_absent() -> None:
    pcie = [[cell.replace("NV4", "NODE") for cell in row] for row in KINDS]
    found, noted = links_of(matrix(pcie, legend=LEGEND))
    assert (found, noted) == ((), {"links of the cards"})
    # a driver from before NVLink has no line for it either
    found, noted = links_of(matrix(pcie, legend=LEGEND).replace("SYS", "SOC"))
    assert len(found) == 6
    assert noted == {"links without NVLink"}
    found, noted = links_of(matrix(pcie, legend=""))
    assert len(found) == 6
    assert noted == {"links without NVLink and without a legend"}
    assert links_of(matrix(pcie))[1] == set()


def test_all_far_cards_are_told_apart_by_their_zones() -> None:
    far = [["X" if a == b else "SYS" for b in range(4)] for a in range(4)]
    found, _ = zones_of(matrix(far, NAMES[:4]))
    assert [zone.gpus for zone in found] == [(0, 1), (2, 3)]


def test_rows_of_nics_may_be_missing_and_rows_of_cards_may_not() -> None:
    lines = matrix(legend="").split("\n")
    found, noted = zones_of("\n".join(lines[:6]) + "\n")
    assert [nic.name for zone in found for nic in zone.nics] == ["NIC0", "NIC1"]
    assert "rows of NICs that are cut off" in noted
    with pytest.raises(InputError) as raised:
        of("\n".join(lines[:3]) + "\n")
    assert 'the row is missing for "GPU2", "GPU3"' in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("PIX\tSYS\tSYS\t0-7", "PIXSYS\tSYS\t0-7", 'line 2: row GPU0 is damaged: for NIC0 it has "PIXSYS"'),
        ("SYS\tSYS\t0-7", "SYS\t0-7", 'row GPU0 is damaged: for NIC2 it has "0-7,16-23"'),
        ("GPU0\t X \tNV4", "GPU0\t X \tNV2", "row GPU0 has NV2 for GPU1"),
        ("GPU0\t X \tNV4", "GPU0\t X \tNV0", 'row GPU0 is damaged: for GPU1 it has "NV0"'),
        ("GPU1\tNV4\t X ", "GPU1\tNV4\tPIX", "row GPU1 is damaged"),
        ("\nGPU1\t", "\nGPU7\t", 'row "GPU7" has no column'),
        ("\nGPU1\t", "\nGPU0\t", 'row "GPU0" is there twice'),
        ("\tGPU0\tGPU1\tGPU2", "\tGPU0\tGPU2\tGPU2", "the header does not name GPU0 and so on"),
    ],
)
def test_damage_is_named_and_never_shifted(old: str, new: str, what: str) -> None:
    text = matrix()
    assert old in text
    with pytest.raises(InputError) as raised:
        of(text.replace(old, new, 1))
    assert what in str(raised.value)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_lost_separator_or_cell_of_the_matrix_is_always_found(data: st.DataObject) -> None:
    lines = matrix().split("\n")
    row = data.draw(st.integers(1, 7))
    cells = lines[row].split("\t")
    at = data.draw(st.integers(1, 6))
    if data.draw(st.booleans()):
        del cells[at]
    else:
        cells[at : at + 2] = [cells[at].strip() + cells[at + 1].strip()]
    lines[row] = "\t".join(cells)
    with pytest.raises(InputError):
        of("\n".join(lines))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(matrix())), st.integers(0, 40), st.text(max_size=3))
def test_no_damage_ends_otherwise_than_in_a_snapshot_or_an_error(start: int, length: int, other: str) -> None:
    text = matrix()
    damaged = text[:start] + other + text[start + length :]
    try:
        snapshot = read([File("topo.txt", damaged.encode("utf-8", "replace"), "nvidia-smi")])
    except InputError:
        return
    assert sum(gpu.count for gpu in snapshot.nodes[0].gpus) == 4
