"""What scontrol prints as text, and damage of any kind to what Slurm writes."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.errors import InputError
from placement.formats.ledger import Ledger
from placement.formats.slurm import gres_conf, text, topology
from placement.formats.slurm.claims import exclusive
from placement.formats.slurm.records import JobRecord, NodeRecord, PartitionRecord, ReservationRecord
from placement.formats.source import File


def entries(ledger: Ledger, kind: str) -> list[tuple[str, int]]:
    return [(entry.what, entry.count) for entry in ledger.entries() if entry.kind == kind]


NODE = """NodeName=g1 Arch=x86_64 CoresPerSocket=16
   CPUAlloc=8 CPUEfctv=62 CPUTot=64 CPULoad=0.01
   AvailableFeatures=ib,hot
   ActiveFeatures=ib
   Gres=gpu:h100:4(S:0-1)
   GresDrain=N/A
   GresUsed=gpu:h100:2(IDX:0,3)
   OS=Linux 6.1 #1 SMP Wed Apr 28 21:49:45 UTC 2021
   RealMemory=512000 AllocMem=1024 FreeMem=486591 Sockets=2 Boards=1
   State=MIXED+DRAIN ThreadsPerCore=2 TmpDisk=0 Weight=6 Owner=N/A MCS_label=N/A
   Partitions=gpu,long
   CfgTRES=cpu=64,mem=500G,billing=64,gres/gpu=4
   AllocTRES=cpu=8,mem=1G,gres/gpu=2
   Reason=a fan is loud [root@2026-01-01T00:00:00]

NodeName=g2 CPUAlloc=0 CPUTot=64 Gres=(null) State=IDLE
"""

JOB = """JobId=12 ArrayJobId=10 ArrayTaskId=3 JobName=a = b
   UserId=ann(1001) GroupId=ann(1001) MCS_label=N/A
   Priority=77 Nice=0 Account=(null) QOS=normal
   JobState=RUNNING Reason=None Dependency=(null)
   RunTime=00:10:00 TimeLimit=1-02:30:01 TimeMin=N/A
   SubmitTime=1970-01-02T00:00:00 StartTime=1970-01-02T00:00:10 EndTime=Unknown
   NodeList=g[1-2]
   NumNodes=2 NumCPUs=8 NumTasks=2 CPUs/Task=4 ReqB:S:C:T=0:0:*:*
   AllocTRES=cpu=8,mem=32G,node=2,gres/gpu=3
   JOB_GRES=gpu:h100:3
     Nodes=g1 CPU_IDs=0-3 Mem=16384 GRES=gpu:h100:2(IDX:0,3)
     Nodes=g2 CPU_IDs=4-7 Mem=16384 GRES=gpu:h100:1(IDX:1)
   MinMemoryNode=1.50G OverSubscribe=OK Contiguous=0
   TresPerNode=gres/gpu:h100:2

JobId=13 JobName=waits JobState=PENDING Reason=JobHeldUser TimeLimit=UNLIMITED NumNodes=1-4 ArrayTaskId=4-9%2
"""


def test_nodes_of_scontrol() -> None:
    file = File("nodes.txt", NODE.encode())
    assert text.looks_like(file.data)
    first, second = (msgspec.convert(record, NodeRecord) for record in text.nodes(file, Ledger()))
    assert (first.name, first.gres, first.gres_used) == ("g1", "gpu:h100:4(S:0-1)", "gpu:h100:2(IDX:0,3)")
    assert (first.cpus, first.effective_cpus, first.alloc_cpus, first.cores, first.threads) == (64, 62, 8, 16, 2)
    assert (first.state, first.real_memory, first.partitions) == ("MIXED+DRAIN", 512000, ["gpu", "long"])
    assert (first.features, first.active_features, first.gres_drained) == (["ib", "hot"], ["ib"], "")
    assert first.tres_used == "cpu=8,mem=1G,gres/gpu=2"
    assert (second.name, second.gres, second.gres_used) == ("g2", "", None)
    assert text.jobs(file, Ledger()) == []


def test_one_line_says_the_same() -> None:
    joined = "\n".join(" ".join(map(str.strip, block.splitlines())) for block in NODE.split("\n\n"))
    one_line = text.nodes(File("o", f"{joined}\n".encode()), Ledger())
    assert one_line == text.nodes(File("m", NODE.encode()), Ledger())


def test_jobs_of_scontrol() -> None:
    """The limit of 1 day, 2 hours, 30 minutes and 1 second is 1591 minutes, rounded up; 1.5 G are 1536 MiB."""
    ledger = Ledger()
    found = [msgspec.convert(record, JobRecord) for record in text.jobs(File("jobs.txt", JOB.encode()), ledger)]
    first, second = found
    assert (first.job_id, first.array_job_id, first.array_task_id) == (12, 10, 3)
    assert (first.job_state, first.nodes, first.node_count, first.cpus_per_task) == (["RUNNING"], "g[1-2]", 2, 4)
    assert (first.submit_time, first.start_time, first.time_limit) == (86400, 86410, 1591)
    assert (first.account, first.memory_per_node, first.hold) == ("", 1536, False)
    assert first.gres_detail == ["gpu:h100:2(IDX:0,3)", "gpu:h100:1(IDX:1)"]
    assert first.job_resources is not None
    shares = [(one.name, one.cpus.count, one.memory.allocated) for one in first.job_resources.shares]  # type: ignore[union-attr]
    assert shares == [("g1", 4, 16384), ("g2", 4, 16384)]
    assert (second.array_task_string, second.hold) == ("4-9", True)
    assert [(one.node_count, one.max_nodes) for one in found] == [(2, None), (1, 4)]
    assert msgspec.to_builtins(second.time_limit)["infinite"] is True
    assert entries(ledger, "assumed") == [("times in text, which has no time zone", 2)]


def test_a_job_that_has_its_nodes_for_itself() -> None:
    found = text.jobs(
        File("j", b"JobId=1 JobName=x JobState=RUNNING OverSubscribe=NO NodeList=n1 GresEnforceBind=Yes\n"), Ledger()
    )
    record = msgspec.convert(found[0], JobRecord)
    assert (record.shared, record.flags) == ("none", ["GRES_BINDING_ENFORCED"])


@pytest.mark.parametrize(("word", "meant"), [("USER", "user"), ("MCS", "mcs"), ("TOPO", "topo"), ("OK", "")])
def test_jobs_that_share_with_some_only(word: str, meant: str) -> None:
    shown = f"JobId=1 JobName=x JobState=PENDING OverSubscribe={word} Socks/Node=2 NodeList=\n"
    record = msgspec.convert(text.jobs(File("j", shown.encode()), Ledger())[0], JobRecord)
    assert (record.shared, record.sockets_per_node) == (meant, 2)
    assert exclusive(record) is bool(meant)


def test_devices_are_listed_in_the_order_of_the_nodes() -> None:
    """scontrol puts nodes together that have the same cores, and a node of a job may have no device."""
    shown = b"""JobId=1 JobName=x JobState=RUNNING NodeList=g[1-4]
     Nodes=g[1,3] CPU_IDs=0-3 Mem=10 GRES=gpu:h100:1(IDX:0)
     Nodes=g2 CPU_IDs=0-1 Mem=10 GRES=gpu:h100:1(IDX:3)
     Nodes=g4 CPU_IDs=0-1 Mem=10 GRES=
"""
    (found,) = text.jobs(File("j", shown), Ledger())
    zero, three = ("gpu:h100:1(IDX:0)", "gpu:h100:1(IDX:3)")
    assert found["gres_detail"] == [zero, three, zero, ""]


def test_a_partition_whose_jobs_share_no_node() -> None:
    shown = b"PartitionName=p AllowGroups=ALL MaxNodes=UNLIMITED Nodes=n1 OverSubscribe=%s State=UP\n"
    for word, shares in ((b"EXCLUSIVE", 0), (b"NO", None), (b"FORCE:4", None)):
        (found,) = text.partitions(File("p", shown % word), Ledger())
        record = msgspec.convert(found, PartitionRecord)
        assert record.maximums is not None
        assert record.maximums.shares == shares


def test_partitions_and_reservations_of_scontrol() -> None:
    shown = (
        b"PartitionName=p AllowGroups=ALL MaxNodes=64 MaxTime=14-00:00:00 Nodes=n[1-2],m1 State=UP TRES=cpu=4,node=3\n"
        b"ReservationName=r StartTime=1970-01-01T01:00:00 EndTime=1970-01-01T02:00:00 Duration=01:00:00\n"
        b"   Nodes=n[1-2] NodeCnt=2 CoreCnt=8 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES\n"
        b"   Users=root Accounts=(null) Licenses=(null) State=INACTIVE\n"
    )
    file = File("p.txt", shown)
    (partition,) = (msgspec.convert(one, PartitionRecord) for one in text.partitions(file, Ledger()))
    assert (partition.name, partition.hosts, partition.states) == ("p", "n[1-2],m1", ("UP",))
    assert partition.maximums is not None
    assert partition.maximums.nodes == 64
    (reservation,) = (msgspec.convert(one, ReservationRecord) for one in text.reservations(file, Ledger()))
    assert (reservation.name, reservation.node_list, reservation.start_time) == ("r", "n[1-2]", 3600)
    assert (reservation.end_time, reservation.flags) == (7200, ["MAINT", "SPEC_NODES"])


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        ("JobId=1 JobName=x AllocTRES=cpu=4,mem=32G,node=", "a part without a value, as if cut off"),
        ("JobId=1 JobName=x JobState=RUNNING\n   JobState=PENDING", "the key JobState is there twice"),
        ("JobId=1 JobName=x\n   more of a name", '"more of a name" does not begin with Key='),
        ("JobId=1 JobName=x JobState=", "there is no JobState"),
        ("JobId=1 JobName=x NumNodes=1-x", 'NumNodes="1-x": expected a whole number'),
        ("JobId=1 JobName=x NumNodes=many", 'NumNodes="many": expected a whole number'),
        ("JobId=1 JobName=x TimeLimit=soon", 'TimeLimit="soon": expected a time'),
        ("JobId=1 JobName=x StartTime=yesterday", 'StartTime="yesterday"'),
        ("JobId=1 JobName=x JobState=RUNNING\n   Nodes=g1 CPU_IDs=0-x Mem=1 GRES=", "CPU_IDs or Mem is damaged"),
        ("NODELIST GRES GRES_USED\ng1 gpu:h100:8 gpu:h10", "a table of sinfo or squeue"),
        ("g1    |gpu:h100:8 |gpu:h100:0(IDX:N/A)|idle", "a table of sinfo or squeue"),
        ("JOBID PARTITION TRES_PER_NODE\n1 gpu gres/gpu:1", "a table of sinfo or squeue"),
    ],
)
def test_damaged_text(shown: str, message: str) -> None:
    assert text.looks_like(shown.encode())
    with pytest.raises(InputError) as caught:
        text.jobs(File("text", f"{shown}\n".encode()), Ledger())
    assert message in str(caught.value)


@pytest.mark.parametrize("end", [70, 110, 250, 330, len(NODE) - 1])
def test_a_text_that_breaks_off_is_refused(end: int) -> None:
    """Cut anywhere: GresUsed=gpu:h100:2(IDX:0,3) must not pass for fewer cards, nor a node without a state for idle."""
    for cut in (NODE[:end], NODE[:end].rpartition("\n")[0] + "\n"):
        if "\n   State=" not in cut or not cut.endswith("\n"):
            with pytest.raises(InputError, match=r"breaks off|there is no"):
                text.nodes(File("cut", cut.encode()), Ledger())


CONF = "SwitchName=spine Switches=leaf.[9-10] # all\nSwitchName=l9 Nodes=n[08-09]\nSwitchName=l10 \\\n Nodes=n10\n"


@given(st.data())
def test_no_mutation_brings_a_traceback(data: st.DataObject) -> None:
    """Bytes put into, or taken out of, files of each kind: read, or refused."""
    content = data.draw(st.sampled_from([CONF, NODE, JOB, "Name=gpu Count=2 File=/dev/nvidia[0-1]\n"])).encode()
    at = data.draw(st.integers(0, len(content)))
    cut = data.draw(st.integers(0, 8))
    put = data.draw(st.binary(max_size=4) | st.sampled_from([b"=", b"[", b"]", b",", b"\n", b"\x00", b"9" * 30, b"-"]))
    file = File("mutated", content[:at] + put + content[at + cut :])
    for reader in (topology.read, gres_conf.read, text.nodes, text.jobs, text.partitions, text.reservations):
        with contextlib.suppress(InputError):
            reader(file, Ledger())
