"""Traces: jobs as pending ones of an empty cluster, and as arrivals over time."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec
import pytest
from cli_cases import NODES_CSV, PODS_CSV, placement, refused
from hypothesis import given
from hypothesis import strategies as st

from placement.errors import InputError
from placement.formats.events import arrivals, dumps
from placement.formats.options import Options
from placement.formats.philly import Traced, busy
from placement.formats.read import read
from placement.formats.source import File
from placement.snapshot import Duration, Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.events import JobArrived
from placement.snapshot.read import load, load_events, loads, verified

SECONDS = (
    "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n0,1,0,60,vgg,160,3\n1,12,40,9,bert,20,3\n"
)
"""As Tiresias writes them: 160 and 12 x 20 = 240 card seconds in 40 seconds."""
MINUTES = (
    "job_id,user,num_gpu,submit_time,duration,expect_time_list,expect_value_list\n7,vc_a,2,5,3,9,1\n8,vc_b,0,6,1,2,1\n"
)
LOG = (
    '[{"jobid": "app_1", "vc": "a1", "user": "u", "status": "Pass", "submitted_time": "1970-01-02 00:00:10",'
    ' "attempts": [{"start_time": "1970-01-02 00:01:00", "end_time": "1970-01-02 00:02:00", "detail":'
    ' [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu3"]}]},'
    ' {"start_time": "1970-01-02 00:03:00", "end_time": "1970-01-02 00:03:30", "detail": []}]},'
    ' {"jobid": "app_2", "vc": "a2", "submitted_time": "1970-01-02 00:00:20", "attempts": []},'
    ' {"jobid": "app_3", "vc": "a2", "submitted_time": "1970-01-02 00:00:30",'
    ' "attempts": [{"start_time": "None", "end_time": "None", "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]}]'
)

ANYWHERE = {"node": 1.0}
"""A measured run time is that of the job wherever it lies."""


def of(text: str, options: Options | None = None, name: str = "") -> Snapshot:
    return read([File("jobs", text.encode(), name)], options)


def assumed(snapshot: Snapshot, what: str) -> list[str]:
    return [entry.why for entry in snapshot.ledger if entry.kind == "assumed" and entry.what == what]


# --- jobs --------------------------------------------------------------------------------------------------------


def test_seconds() -> None:
    snapshot = of(SECONDS)
    # 400 card seconds in 40 seconds are 10 cards, 2 nodes of 8; 12 cards are 2 tasks of 6
    assert snapshot.nodes == (Node(name="node", count=2, gpus=(Gpu(model="GPU", count=8),)),)
    assert snapshot.jobs == (
        Job(
            name="job-0",
            submit_time=0,
            duration=Duration(seconds=160, levels=ANYWHERE),
            groups=(TaskGroup(name="workers", task=Task(gpus=1)),),
        ),
        Job(
            name="job-1",
            submit_time=40,
            duration=Duration(seconds=20, levels=ANYWHERE),
            groups=(TaskGroup(name="workers", count=2, task=Task(gpus=6)),),
        ),
    )
    assert assumed(snapshot, "unit of the times") == ["seconds; --time-unit says another"]
    assert assumed(snapshot, "nodes")[0].startswith("2, which the jobs keep busy")


def test_minutes_and_users_and_no_cards() -> None:
    snapshot = of(MINUTES)
    (job,) = snapshot.jobs
    assert (job.name, job.queue, job.submit_time, job.duration) == (
        "job-7",
        "vc_a",
        300,
        Duration(seconds=180, levels=ANYWHERE),
    )
    assert snapshot.time == 300
    assert [entry.count for entry in snapshot.ledger if entry.what == "jobs without cards"] == [1]


def test_options_say_the_cluster_and_the_unit() -> None:
    snapshot = of(SECONDS, Options(nodes=5, cards_per_node=4, unit=60.0))
    assert snapshot.nodes == (Node(name="node", count=5, gpus=(Gpu(model="GPU", count=4),)),)
    assert snapshot.jobs[1].submit_time == 2400
    assert snapshot.jobs[1].groups[0] == TaskGroup(name="workers", count=3, task=Task(gpus=4))
    assert not assumed(snapshot, "nodes")
    assert not assumed(snapshot, "unit of the times")


def test_names_of_columns_and_what_has_no_column() -> None:
    snapshot = of("vc,job_type,total_steps,arrival_s,scale_factor\n0e,LM,10,0.5,1\n0e,LM,10,6.25,16\n")
    assert [(job.name, job.queue, job.submit_time, job.duration) for job in snapshot.jobs] == [
        ("job-0", "0e", 0.5, None),
        ("job-1", "0e", 6.25, None),
    ]
    assert assumed(snapshot, "run time") == ["none: no column says it"]
    # 17 cards at once
    assert snapshot.nodes[0].count == 3
    assert assumed(snapshot, "nodes")[0].startswith("3, which hold all jobs at once")


@pytest.mark.parametrize(
    ("cards", "jobs", "nodes"),
    [
        (8, [(64, 0.0, 1.0), (1, 1000.0, 1.0)], 8),  # the widest job
        (8, [(1, 0.0, 800.0), (1, 100.0, 801.0)], 3),  # 1601 card seconds in 100 are 16.01 cards
        (8, [(1, 0.0, 800.0), (1, 100.0, 800.0)], 2),
        (8, [(4, 3.0, 9.0), (5, 3.0, 9.0)], 2),  # at one moment
        (8, [(9, 3.0, None), (9, 5.0, None)], 3),
    ],
)
def test_busy(cards: int, jobs: list[tuple[int, float, float | None]], nodes: int) -> None:
    assert busy([Traced("j", wanted, submit, seconds, "") for wanted, submit, seconds in jobs], cards)[0] == nodes


def test_the_log_of_philly() -> None:
    snapshot = of(LOG)
    # the first attempt has 3 cards; 60 + 30 seconds; the second job never had cards
    assert [(job.name, job.queue, job.submit_time, job.duration) for job in snapshot.jobs] == [
        ("app_1", "a1", 86410, Duration(seconds=90, levels=ANYWHERE)),
        ("app_3", "a2", 86430, None),
    ]
    assert [job.groups[0].task for job in snapshot.jobs] == [Task(gpus=3), Task(gpus=1)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("num_gpu,duration\n1,2\n", ["line 1", "submit_time"]),
        ("submit_time,num_gpu\n1,two\n", ["line 2, column num_gpu", "'two'"]),
        ("submit_time,num_gpu\n-1,2\n", ["line 2, column submit_time"]),
        ("submit_time,num_gpu\nnan,2\n", ["line 2, column submit_time"]),
        ("submit_time,num_gpu\n1e999,2\n", ["line 2, column submit_time"]),
        ("submit_time,num_gpu\n1e300,2\n", ["line 2, column submit_time"]),
        ("submit_time,num_gpu,duration\n1,2,inf\n", ["line 2, column duration"]),
        ("submit_time,num_gpu\n1,99999999999999999999\n", ["line 2, column num_gpu"]),
        ("submit_time,num_gpu\n1\n", ["line 2", "shorter"]),
        ("submit_time,num_gpu\n1,0\n", ["no job with cards"]),
        ("submit_time,num_gpu\n", ["no job with cards"]),
        ('submit_time,num_gpu\n1,"2\n', ["CSV"]),
        ("trace,submit_time,num_gpu\na,1,2\nb,1,2\n", ["line 3, column trace", "several traces"]),
        (LOG.replace("00:01:00", "noon"), ["[0].attempts[0].start_time", "noon"]),
        (LOG.replace('"jobid": "app_2"', '"id": 2'), ["[1]", "jobid"]),
        (LOG[:-1], ["not JSON"]),
        ("{}", ["jobid"]),
    ],
)
def test_what_is_wrong_is_named(text: str, parts: list[str]) -> None:
    with pytest.raises(InputError) as error:
        of(text, name="philly")
    assert error.value.message().count("\n") == 0
    for part in ["jobs", *parts]:
        assert part in str(error.value)


@given(st.sampled_from((SECONDS, MINUTES, LOG)), st.integers(0, 10**6), st.sampled_from('09e-+.,"[]{}:\n\x00é'))
def test_no_change_of_a_trace_ends_in_anything_but_an_input_error(text: str, at: int, new: str) -> None:
    at %= len(text)
    for changed in (text[:at] + new + text[at + 1 :], text[:at] + 19 * new + text[at:], text[:at]):
        with contextlib.suppress(InputError):
            of(changed, name="philly")


def test_one_file_alone() -> None:
    with pytest.raises(InputError, match="one file"):
        read([File("a", SECONDS.encode()), File("b", SECONDS.encode())])


# --- arrivals ----------------------------------------------------------------------------------------------------

ONE = (TaskGroup(name="g", task=Task(gpus=1)),)
HERE = Running(tasks=(RunningTask(group="g", index=0, node="a", gpus=(0,)),))


def test_arrivals_in_order_and_of_one_time_in_that_of_the_file() -> None:
    jobs = [Job(name=name, groups=ONE, submit_time=time) for name, time in (("b", 5.0), ("c", 2.0), ("a", 5.0))]
    snapshot, log = arrivals(verified(Snapshot(time=9.0, jobs=tuple(jobs))))
    assert [(event.time, event.job.name) for event in log.events if isinstance(event, JobArrived)] == [
        (2.0, "c"),
        (5.0, "b"),
        (5.0, "a"),
    ]
    assert (snapshot.jobs, snapshot.time) == ((), 2.0)
    assert b"submit_time" not in dumps(log)


def test_running_jobs_stay_and_others_come_no_earlier_than_now() -> None:
    node = Node(name="a", gpus=(Gpu(model="T4"),))
    jobs = (
        Job(name="r", groups=ONE, running=HERE),
        Job(name="late", groups=ONE, submit_time=12.0),
        Job(name="early", groups=ONE, submit_time=3.0),
    )
    snapshot, log = arrivals(verified(Snapshot(time=9.0, nodes=(node,), jobs=jobs)))
    assert [job.name for job in snapshot.jobs] == ["r"]
    assert [event.time for event in log.events] == [9.0, 12.0]


def test_a_job_that_nobody_knows_when_it_comes_is_an_error() -> None:
    with pytest.raises(InputError, match='when job "j" comes'):
        arrivals(verified(Snapshot(jobs=(Job(name="j", groups=ONE),))))


def test_the_command_writes_both(in_tmp: Path) -> None:
    Path("jobs.csv").write_text(SECONDS, "utf-8")
    words = ["import", "philly", "jobs.csv", "--nodes", "2", "--events", "log.json", "-o", "cluster.json"]
    assert placement(*words).exit_code == 0
    snapshot, log = load("cluster.json"), load_events("log.json")
    assert (snapshot.jobs, snapshot.nodes[0].count) == ((), 2)
    assert [event.time for event in log.events] == [0, 40]
    done = placement("simulate", "cluster.json", "log.json", "--format", "json")
    # 12 cards wait for nobody: the first job has 1 of 16
    assert msgspec.json.decode(done.stdout_bytes)[0]["figures"]["makespan"] == 160


def test_openb_runs_from_when_it_was_scheduled(in_tmp: Path) -> None:
    Path("nodes.csv").write_text(NODES_CSV, "utf-8")
    rows = PODS_CSV.splitlines()
    rows += ["p2,1,1,1,1000,,LS,Running,3,20,", "p3,1,1,1,1000,,LS,Failed,4,4,4", "p4,1,1,1,1000,,LS,Pending,6,,"]
    Path("pods.csv").write_text("\n".join([*rows, ""]), "utf-8")
    done = placement("import", "nodes.csv", "pods.csv", "--events", "log.json", "-o", "s.json", "-v")
    assert done.exit_code == 0
    assert "2 pods deleted before they began, or never" in done.stderr
    events = msgspec.json.decode(Path("log.json").read_bytes())["events"]
    assert [(event["time"], event["job"]["name"], event["job"].get("duration")) for event in events] == [
        (0, "p0", {"seconds": 1}),
        (3, "p2", {"seconds": 17}),
        (4, "p3", None),
        (5, "p1", {"seconds": 1}),
        (6, "p4", None),
    ]
    assert not loads(Path("s.json").read_bytes()).jobs


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--events", "jobs.csv"], ["--events", "is the input"]),
        (["--events", "s.json", "-o", "s.json"], ["--events", "the snapshot goes there already"]),
        (["--events", "-"], ["--events", "the snapshot goes there already"]),
        (["--nodes", "0"], ["--nodes", "1 to"]),
        (["--nodes", "1000001"], ["--nodes", "1 to"]),
        (["--cards-per-node", "257"], ["--cards-per-node", "1 to 256"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_bad_usage(in_tmp: Path, words: list[str], parts: list[str]) -> None:
    Path("jobs.csv").write_text(SECONDS, "utf-8")
    refused(placement("import", "jobs.csv", *words), *parts)
    assert [path.name for path in Path().iterdir()] == ["jobs.csv"]
