"""Plans as commands of Slurm: words that a shell gives back as they are, lists that expand to the nodes of the plan."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement as pl
from placement.errors import InputError
from placement.formats.read import read as imported
from placement.formats.slurm.hostlist import expand
from placement.formats.slurm.write import write, write_sbatch
from placement.formats.source import File
from placement.snapshot import Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.snapshot.read import verified


def node(name: str, *gpus: Gpu) -> Node:
    return Node(name=name, gpus=gpus or (Gpu(model="h100", count=4),))


def job(name: str, tasks: int = 1, gpus: int = 4, **task: object) -> Job:
    return Job(name=name, groups=(TaskGroup(name="node", count=tasks, task=Task(gpus=gpus, **task)),))  # type: ignore[arg-type]


def solved(nodes: list[Node], *jobs: Job) -> tuple[Snapshot, pl.Plan]:
    snapshot = verified(Snapshot(nodes=tuple(nodes), jobs=jobs))
    return snapshot, pl.solve(snapshot, solver="fgd")


def test_a_script() -> None:
    """Twelve cards for three tasks of four: n9, n10 and n11, which count on in that order."""
    snapshot, plan = solved([node("n10"), node("n9"), node("n11")], job("123", 3))
    assert write(snapshot, plan).decode().splitlines() == [
        "#!/bin/sh",
        "# Nodes for pending jobs. Slurm chooses the cards; comments say those of the plan.",
        "status=0",
        "scontrol update JobId=123 'ReqNodeList=n[9-11]' NumNodes=3 || status=1",
        "# GPUs by node: n10: 0,1,2,3; n9: 0,1,2,3; n11: 0,1,2,3",
        'exit "$status"',
    ]


def test_two_tasks_on_one_node_are_one_node() -> None:
    snapshot, plan = solved([node("n1")], job("5_7", 2, 2))
    assert "scontrol update JobId=5_7 ReqNodeList=n1 NumNodes=1 || status=1" in write(snapshot, plan).decode()
    assert write_sbatch(snapshot, plan).decode().splitlines()[1] == "--nodelist=n1 --nodes=1 --gres=gpu:h100:4"


def test_options_for_cards() -> None:
    """Alike nodes have --gres by node; of unlike ones the cards are given in all, 1 + 2 of them."""
    snapshot, plan = solved([node("a"), node("b")], job("x", 2))
    assert write_sbatch(snapshot, plan).decode().splitlines() == [
        '# "x", GPUs by node: a: 0,1,2,3; b: 0,1,2,3',
        "--nodelist=a,b --nodes=2 --gres=gpu:h100:4",
    ]
    small, large = node("a", Gpu(model="h100", count=1)), node("b", Gpu(model="h100", count=2))
    snapshot, plan = solved([small, large], job("x", 3, 1))
    assert write_sbatch(snapshot, plan).decode().splitlines()[1] == "--nodelist=a,b --nodes=2 --gpus=h100:3"
    mixed = node("a", Gpu(model="h100"), Gpu(model="a100", count=2))
    snapshot, plan = solved([mixed], job("x", 3, 1))
    assert write_sbatch(snapshot, plan).decode().splitlines()[1] == (
        "--nodelist=a --nodes=1 --gres=gpu:a100:2,gpu:h100:1"
    )


@pytest.mark.parametrize("model", ["gpu", "a card, of some kind"])
def test_models_that_are_no_types(model: str) -> None:
    snapshot, plan = solved([node("a", Gpu(model=model, count=2))], job("x", 1, 2))
    assert write_sbatch(snapshot, plan).decode().splitlines()[1] == "--nodelist=a --nodes=1 --gres=gpu:2"


def test_a_job_without_cards() -> None:
    snapshot, plan = solved([node("a")], job("7", 1, 0, cpu=1))
    assert write_sbatch(snapshot, plan).decode() == '# "7", GPUs by node: a: none\n--nodelist=a --nodes=1\n'


@pytest.mark.parametrize("name", ["default/web", "12-0", "123; reboot", "1234_", "१२"])
def test_jobs_that_are_not_of_slurm(name: str) -> None:
    snapshot, plan = solved([node("a")], job(name))
    with pytest.raises(InputError, match="has no number of Slurm"):
        write(snapshot, plan)
    assert write_sbatch(snapshot, plan)


@pytest.mark.parametrize("name", ["12", "12_3", "12+1"])
def test_jobs_that_are_of_slurm(name: str) -> None:
    snapshot, plan = solved([node("a")], job(name))
    assert f"JobId={name} " in write(snapshot, plan).decode()


@pytest.mark.parametrize("name", ["a,b", "a[1-2]", "a b", "none", "(null)", "./n", "n*2"])
def test_names_that_a_list_takes_for_something_else(name: str) -> None:
    snapshot, plan = solved([node(name)], job("1"))
    for writer in (write, write_sbatch):
        with pytest.raises(InputError, match="cannot stand in a list of Slurm"):
            writer(snapshot, plan)


def test_shares_have_no_one_name() -> None:
    snapshot, plan = solved([node("a")], job("1", 1, 1, gpu_share="500m"))
    with pytest.raises(InputError, match="takes a share of a card"):
        write_sbatch(snapshot, plan)


def test_nothing_is_placed() -> None:
    snapshot, plan = solved([node("a")], job("1", 2))
    assert write(snapshot, plan).decode().splitlines()[3:] == ['exit "$status"']
    assert write_sbatch(snapshot, plan) == b""


NAMES = st.one_of(
    st.from_regex(r"\A(gpu|n-|r0c)[0-9]{1,3}\Z"),
    st.text(st.sampled_from("ab0189.-_$`'\"\\;&|(){}<>?!#~=%^@:é"), min_size=1, max_size=12),
    st.sampled_from(
        ["$(touch x)".replace(" ", "$IFS"), "`id`", "a';reboot;'", "-n", "--help", "~", "a\\", "#", "08", "9"]
    ),
)


@given(st.lists(NAMES, min_size=1, max_size=6, unique=True))
@settings(max_examples=60, deadline=None)
def test_no_name_runs_anything(names: list[str]) -> None:
    """The words of each line are those that were meant, and the lists expand to the nodes."""
    snapshot, plan = solved([node(name) for name in names], job("123", len(names)))
    script = write(snapshot, plan).decode()
    (line,) = (line for line in script.splitlines() if line.startswith("scontrol"))
    words = shlex.split(line)
    assert words[:3] + words[4:] == ["scontrol", "update", "JobId=123", f"NumNodes={len(names)}", "||", "status=1"]
    assert sorted(expand(words[3].removeprefix("ReqNodeList="))) == sorted(names)
    options = write_sbatch(snapshot, plan).decode().splitlines()
    assert len(options) == 2
    assert options[0].startswith("# ")
    nodelist, *others = shlex.split(options[1])
    assert others == [f"--nodes={len(names)}", "--gres=gpu:h100:4"]
    assert sorted(expand(nodelist.removeprefix("--nodelist="))) == sorted(names)


def test_a_shell_reads_the_same_words() -> None:
    """A function in place of scontrol prints its words, one in a line; no name of these runs or expands."""
    names = ["$(echo$IFS'x')", "`id`", "a';exit;'", '"', "\\", "~", "&", "#n", "n1", "n2"]
    snapshot, plan = solved([node(name) for name in names], job("1", len(names)))
    script = write(snapshot, plan)
    shown = b"scontrol() { printf '%s\\n' \"$@\"; }\n" + script
    ran = subprocess.run(["sh"], input=shown, capture_output=True, check=True, cwd="/")
    assert ran.stderr == b""
    update, job_id, nodes, number = ran.stdout.decode().splitlines()
    assert (update, job_id, number) == ("update", "JobId=1", "NumNodes=10")
    assert sorted(expand(nodes.removeprefix("ReqNodeList="))) == sorted(names)


def test_a_failure_does_not_stop_the_others() -> None:
    snapshot, plan = solved([node("a"), node("b")], job("1"), job("2"))
    shown = b'scontrol() { echo "$2"; [ "$2" = JobId=2 ]; }\n' + write(snapshot, plan)
    ran = subprocess.run(["sh"], input=shown, capture_output=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, b"JobId=1\nJobId=2\n")


SHOWN = b"""NodeName=g1 CoresPerSocket=16 CPUAlloc=4 CPUTot=32 Gres=gpu:h100:4 GresUsed=gpu:h100:2(IDX:0,3) State=MIXED
   RealMemory=1000 AllocMem=100 Sockets=2 ThreadsPerCore=1 Partitions=gpu

NodeName=g2 CoresPerSocket=16 CPUAlloc=0 CPUTot=32 Gres=gpu:h100:4 GresUsed=gpu:h100:0(IDX:N/A) State=IDLE
   RealMemory=1000 AllocMem=0 Sockets=2 ThreadsPerCore=1 Partitions=gpu
"""

QUEUE = b"""JobId=7 JobName=runs JobState=RUNNING Partition=gpu NodeList=g1 NumNodes=1 NumCPUs=4 NumTasks=1 CPUs/Task=4
   AllocTRES=cpu=4,mem=100M,node=1,gres/gpu=2 TresPerNode=gres/gpu:h100:2 OverSubscribe=OK
     Nodes=g1 CPU_IDs=0-3 Mem=100 GRES=gpu:h100:2(IDX:0,3)

JobId=8 JobName=waits JobState=PENDING Reason=Resources Partition=gpu NumNodes=1 NumCPUs=4 NumTasks=1 CPUs/Task=4
   ReqTRES=cpu=4,mem=100M,node=1,gres/gpu=4 TresPerNode=gres/gpu:h100:4 OverSubscribe=OK

JobId=9 JobName=too JobState=PENDING Reason=Resources Partition=gpu NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1
   ReqTRES=cpu=1,mem=100M,node=1,gres/gpu=2 TresPerNode=gres/gpu:h100:2 OverSubscribe=OK
"""


def test_from_the_texts_of_a_cluster_to_its_commands() -> None:
    """Job 7 holds cards 0 and 3 of g1, so that job 8 gets all four of g2, and job 9 the cards 1 and 2 of g1."""
    snapshot = imported([File("nodes.txt", SHOWN), File("jobs.txt", QUEUE)])
    plan = pl.solve(snapshot, solver="exact")
    assert write(snapshot, plan).decode().splitlines()[3:-1] == [
        "scontrol update JobId=8 ReqNodeList=g2 NumNodes=1 || status=1",
        "# GPUs by node: g2: 0,1,2,3",
        "scontrol update JobId=9 ReqNodeList=g1 NumNodes=1 || status=1",
        "# GPUs by node: g1: 1,2",
    ]
    assert write_sbatch(snapshot, plan).decode().splitlines()[1::2] == [
        "--nodelist=g2 --nodes=1 --gres=gpu:h100:4",
        "--nodelist=g1 --nodes=1 --gres=gpu:h100:2",
    ]


def test_cores_are_left_for_the_cards_of_a_node() -> None:
    """Eight cards beside 16 cores, and beside 32; one job of 12 cores and a card, 15 of a core and a card.

    On the small node 16 - 12 = 4 cores would be left for 7 cards, and 3 jobs would wait; on the large one 20 are.
    """
    shown = "".join(
        f"NodeName={name} CPUAlloc=0 CPUTot={cpus} Gres=gpu:8 GresUsed=gpu:0 State=IDLE Sockets=1 CoresPerSocket={cpus}"
        f" ThreadsPerCore=1 RealMemory=1000 AllocMem=0\n"
        for name, cpus in (("small", 16), ("large", 32))
    )
    queue = "".join(
        f"JobId={number} JobName=j JobState=PENDING NumNodes=1 NumCPUs={cpus} NumTasks=1 CPUs/Task={cpus}"
        f" ReqTRES=cpu={cpus},node=1,gres/gpu=1 TresPerNode=gres/gpu:1 OverSubscribe=OK\n"
        for number, cpus in enumerate([12] + [1] * 15, 100)
    )
    snapshot = imported([File("nodes.txt", shown.encode()), File("jobs.txt", queue.encode())])
    lines = write(snapshot, pl.solve(snapshot, solver="exact")).decode().splitlines()
    updates = [shlex.split(line) for line in lines if line.startswith("scontrol")]
    assert len(updates) == 16
    assert ["JobId=100", "ReqNodeList=large"] in [words[2:4] for words in updates]
