"""Pictures of schedules: what is drawn where, by hand, and what is left out."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from fractions import Fraction

import msgspec
import pytest

from placement import instances, load, schedule
from placement.report import boxes
from placement.report.boxes import Box, chart
from placement.report.gantt import clock, page, svg
from placement.snapshot import Duration, Gpu, Job, Node, Reservation, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.timetable import Schedule

TEXT = "{http://www.w3.org/2000/svg}text"
TITLE = "{http://www.w3.org/2000/svg}title"


def _job(name: str, seconds: float, gpus: int = 1, share: str | None = None, **fields: object) -> Job:
    group = TaskGroup(name="g", task=Task(gpus=gpus, gpu_share=share))
    job = Job(name=name, groups=(group,), duration=Duration(seconds=seconds))
    return msgspec.structs.replace(job, **fields)


def _on(job: Job, *cards: int) -> Job:
    place = RunningTask(group="g", index=0, node="n", gpus=cards)
    return msgspec.structs.replace(job, running=Running(tasks=(place,)))


def _texts(drawn: str) -> list[str]:
    return [text.text or "" for text in ElementTree.fromstring(drawn).iter(TEXT)]


HALVES = Snapshot(
    nodes=(Node(name="n", gpus=(Gpu(model="A", count=2),)), Node(name="cpu", cpu=4)),
    reservations=(Reservation(name="later", nodes=("n",), start=40, end=50),),
    jobs=(
        msgspec.structs.replace(_on(_job("stays", 1.0), 1), duration=None),
        _job("a", 10.0, share="0.5"),
        _job("b", 30.0, share="0.5"),
        _job("c", 10.0, share="0.5"),
        _job("host", 1.0, gpus=0),
    ),
)
"""Card 1 is in use for ever. On card 0 a and b start at once, and c takes the half of a at 10."""


def test_shares_lie_beside_one_another() -> None:
    drawn = chart(HALVES, schedule(HALVES, solver="fifo"))
    half = Fraction(1, 2)
    assert drawn.boxes == [
        Box("a", "n", 0, 1, Fraction(0), half, 0.0, 10.0),
        Box("b", "n", 0, 1, half, half, 0.0, 30.0),
        Box("c", "n", 0, 1, Fraction(0), half, 10.0, 20.0),
        Box("stays", "n", 1, 1, Fraction(0), Fraction(1), 0.0, 30.0, running=True, endless=True),
    ]
    assert [name for name, _ in drawn.nodes] == ["n"]
    assert (drawn.end, drawn.hidden_nodes, drawn.hidden_boxes, drawn.without_cards) == (30.0, 0, 0, 1)
    assert "not drawn: 1 task without cards" in _texts(svg(HALVES, schedule(HALVES, solver="fifo")))


def test_a_job_that_is_stopped_and_restored() -> None:
    """low runs on both cards from now; high takes them at once, and low is restored for 5 s when it has ended.

    Without a checkpoint all of the 20 s of work of low is done again.
    """
    low = _on(_job("low", 20.0, 2, preemptible=True, restart_seconds=5.0), 0, 1)
    snapshot = Snapshot(nodes=HALVES.nodes[:1], jobs=(low, _job("high", 10.0, 2, priority=1)))
    drawn = chart(snapshot, schedule(snapshot, solver="priority-preemptive"))
    assert drawn.boxes == [
        Box("high", "n", 0, 2, Fraction(0), Fraction(1), 0.0, 10.0),
        Box("low", "n", 0, 2, Fraction(0), Fraction(1), 10.0, 35.0, restart=5.0),
    ]
    found = schedule(snapshot, solver="priority-preemptive")
    assert found.figures.preemptions == 1
    text = svg(snapshot, found)
    assert "low: 10 to 35 s, n cards 0 to 1, 5 s restored first" in [
        title.text for title in ElementTree.fromstring(text).iter(TITLE)
    ]
    assert "striped: restored after a stop" in _texts(text)
    # 960 pixels are 35 s: low begins at 10 / 35 of them, and is restored for 5 / 35
    boxes = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="24" fill="(url|#\w+)', text)
    left = float(boxes[0][0])
    placed = {(round(35 * (float(x) - left) / 960, 2), round(35 * float(width) / 960, 2)) for x, width, _ in boxes}
    assert placed == {(0, 35), (0, 10), (10, 25), (10, 5)}


def test_names_are_escaped() -> None:
    name = '<script>alert("x")</script>&'
    snapshot = Snapshot(nodes=(Node(name="<b>", gpus=(Gpu(model="A"),)),), jobs=(_job(name, 1.0),))
    found = schedule(snapshot, solver="fifo")
    whole = page(snapshot, found)
    assert "<script" not in whole
    assert _texts(svg(snapshot, found))[-2] == "<b>"
    assert not re.search(r"(src|href|@import)", whole)
    assert "http" not in whole.replace("http://www.w3.org/2000/svg", "")


def _lab() -> tuple[Snapshot, Schedule]:
    snapshot = load(instances.path("time-shared-lab"))
    return snapshot, schedule(snapshot, solver="tiresias-las")


def test_what_is_cut_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot, found = _lab()
    whole = chart(snapshot, found)
    assert (len(whole.nodes), whole.hidden_nodes, whole.hidden_boxes) == (12, 0, 0)
    monkeypatch.setattr(boxes, "MOST_CARDS", 30)
    monkeypatch.setattr(boxes, "MOST_BOXES", 5)
    drawn = chart(snapshot, found)
    assert [name for name, _ in drawn.nodes] == ["a-0", "a-1", "a-2"]
    there = [box for box in whole.boxes if box.node in ("a-0", "a-1", "a-2")]
    assert drawn.boxes == sorted(there, key=lambda box: -box.area)[:5]
    assert (drawn.hidden_nodes, drawn.hidden_boxes) == (9, len(there) - 5)
    assert f"not drawn: 9 more nodes, {len(there) - 5} shorter or smaller stretches" in _texts(svg(snapshot, found))[-1]


def test_no_two_boxes_lie_on_each_other() -> None:
    drawn = chart(*_lab()).boxes
    for place, one in enumerate(drawn):
        for other in drawn[:place]:
            apart = one.first + one.cards <= other.first or other.first + other.cards <= one.first
            assert one.node != other.node or apart or one.end <= other.start or other.end <= one.start


@pytest.mark.parametrize(
    ("seconds", "marks"), [(1.0, ["0", "1 s"]), (86400.0 * 365, ["0", "31 d", "62 d"]), (50.0, ["0", "5 s", "10 s"])]
)
def test_marks_of_time(seconds: float, marks: list[str]) -> None:
    """A year has no more than twelve marks: ⌈365 / 12⌉ = 31 days."""
    snapshot = Snapshot(nodes=HALVES.nodes[:1], jobs=(_job("x", seconds, 2),))
    texts = _texts(svg(snapshot, schedule(snapshot, solver="fifo")))
    assert texts[1 : 1 + len(marks)] == marks
    assert len(texts) <= 16


def test_the_clock() -> None:
    assert [clock(seconds) for seconds in (0, 59, 3661, 90000)] == ["0", "59 s", "1 h 1 min 1 s", "1 d 1 h"]


def test_a_picture_of_nothing() -> None:
    busy = msgspec.structs.replace(HALVES, jobs=HALVES.jobs[:1])
    texts = _texts(svg(busy, schedule(busy, solver="fifo")))
    assert "nothing here has an end" in texts
    assert "stays" in texts
    assert ElementTree.fromstring(svg(Snapshot(), schedule(Snapshot(), solver="fifo"))) is not None
