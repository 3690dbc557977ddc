"""Who holds which cards of which node, from when until when: what a picture of a schedule is made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from placement.report.occupancy import names, share_of
from placement.snapshot import Node, Snapshot, Task
from placement.snapshot.fields import Names
from placement.snapshot.leaves import leaf_tasks
from placement.timetable import Schedule

MOST_CARDS = 512
"""Lines that are drawn; nodes beyond are counted."""
MOST_BOXES = 10_000
"""Boxes that are drawn, those of most cards times seconds; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Box:
    """A stretch of a job on neighbouring cards of a node.

    Attributes
    ----------
    job : str
    node : str
    first, cards : int
        Index of the first card, and how many.
    low, share : Fraction
        From where on the job has how much of each card; it has all of several.
    start, end : float
        Seconds after the snapshot's time.
    restart, lost : float
        Seconds at its beginning in which it is restored, and at its end of work that is lost.
    running : bool
        Whether it runs now.
    endless : bool
        Whether it has no end; then `end` is that of the picture.
    """

    job: str
    node: str
    first: int
    cards: int
    low: Fraction
    share: Fraction
    start: float
    end: float
    restart: float = 0.0
    lost: float = 0.0
    running: bool = False
    endless: bool = False

    @property
    def area(self) -> float:
        """Cards times seconds."""
        return self.cards * float(self.share) * (self.end - self.start)


@dataclass(slots=True)
class Chart:
    """What is drawn, and how much is not.

    Attributes
    ----------
    nodes : list of (str, Node)
    boxes : list of Box
    end : float
        Of the time axis, in seconds after the snapshot's time.
    hidden_nodes, hidden_boxes, without_cards : int
        Nodes and boxes that are left out for their number, and tasks without cards, which no line is there for.
    """

    nodes: list[tuple[str, Node]]
    boxes: list[Box]
    end: float
    hidden_nodes: int = 0
    hidden_boxes: int = 0
    without_cards: int = 0


def chart(snapshot: Snapshot, schedule: Schedule) -> Chart:
    """Return what a picture of a schedule shows.

    Nodes in use come first, each kind in the order of the snapshot, until there are `MOST_CARDS` cards.

    Parameters
    ----------
    snapshot : Snapshot
    schedule : Schedule
        Checked, for this snapshot.
    """
    end = schedule.figures.makespan
    laid = _Lines(snapshot)
    without = _lay_stretches(laid, snapshot, schedule) + _lay_endless(laid, snapshot, schedule, end)
    used = {box.node for box in laid.boxes}
    nodes = [(name, node) for node in snapshot.nodes if cards_of(node) for name in names(node.name, node.count)]
    nodes.sort(key=lambda one: one[0] not in used)
    drawn: list[tuple[str, Node]] = []
    room = MOST_CARDS
    for name, node in nodes:
        room -= cards_of(node)
        if room < 0 and drawn:
            break
        drawn.append((name, node))
    inside = {name for name, _ in drawn}
    boxes = [box for box in laid.boxes if box.node in inside]
    kept = boxes
    if len(boxes) > MOST_BOXES:
        kept = sorted(boxes, key=lambda box: -box.area)[:MOST_BOXES]
    return Chart(drawn, kept, end, len(nodes) - len(drawn), len(boxes) - len(kept), without)


def cards_of(node: Node) -> int:
    """Return how many cards a node has."""
    return sum(gpu.count for gpu in node.gpus)


def _lay_stretches(laid: _Lines, snapshot: Snapshot, schedule: Schedule) -> int:
    """Lay every stretch of a job with an end; return how many tasks have no cards."""
    running = {job.name for job in snapshot.jobs if job.running is not None}
    stretches, without = schedule.stretches, 0
    tasks = schedule.tasks
    for stretch, group, node, gpus in zip(tasks.stretch, tasks.group, tasks.node, tasks.gpus, strict=True):
        job = stretches.job[stretch]
        if not gpus:
            without += 1
            continue
        times = stretches.start[stretch], stretches.end[stretch]
        parts = stretches.restart[stretch], stretches.lost[stretch]
        # one that is stopped at once runs again later, or is restored first
        laid.lay(job, group, node, gpus, times, parts, running=job in running and not times[0] and not parts[0])
    return without


def _lay_endless(laid: _Lines, snapshot: Snapshot, schedule: Schedule, end: float) -> int:
    """Lay running jobs that have no end; return how many tasks have no cards."""
    ending, without = set(schedule.stretches.job), 0
    for job in snapshot.jobs:
        if job.running is None or job.name in ending:
            continue
        for task in job.running.tasks:
            if task.gpus:
                times = 0.0, end
                laid.lay(job.name, task.group, task.node, task.gpus, times, (0.0, 0.0), running=True, endless=True)
            else:
                without += 1
    return without


@dataclass(slots=True)
class _Lines:
    """Lays boxes on cards, those that share one beside one another.

    Attributes
    ----------
    boxes : list of Box
    """

    snapshot: Snapshot
    boxes: list[Box] = field(default_factory=list)
    _known: Names = field(init=False)
    _tasks: dict[int, dict[str, Task]] = field(default_factory=dict)
    _shared: dict[tuple[str, int], list[tuple[float, float, Fraction, Fraction]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def __post_init__(self) -> None:
        jobs = self.snapshot.jobs
        self._known = Names("job", [job.name for job in jobs], [job.count for job in jobs])

    def lay(
        self,
        job: str,
        group: str,
        node: str,
        gpus: Sequence[int],
        times: tuple[float, float],
        parts: tuple[float, float],
        *,
        running: bool,
        endless: bool = False,
    ) -> None:
        """Lay the cards of a task: a box for those side by side, one for each that it does not have all of."""
        share = self._share(job, group)
        for first, count in _runs(gpus) if share == 1 else ((gpu, 1) for gpu in gpus):
            low = Fraction(0) if share == 1 else self._low(node, first, times, share)
            self.boxes.append(Box(job, node, first, count, low, share, *times, *parts, running, endless))

    def _share(self, job: str, group: str) -> Fraction:
        entry = self._known.find(job)
        if entry is None:
            return Fraction(1)
        if entry not in self._tasks:
            self._tasks[entry] = dict(leaf_tasks(self.snapshot.jobs[entry].groups))
        return share_of(self._tasks[entry][group])

    def _low(self, node: str, card: int, times: tuple[float, float], share: Fraction) -> Fraction:
        """Return the lowest place that is free all that time; 0 where none is, which boxes then lie on each other."""
        start, end = times
        there = self._shared[node, card]
        beside = [(low, high) for begin, over, low, high in there if begin < end and start < over]
        for low in sorted({Fraction(0), *(high for _, high in beside)}):
            if low + share <= 1 and all(low + share <= other or high <= low for other, high in beside):
                break
        else:
            low = Fraction(0)
        there.append((start, end, low, low + share))
        return low


def _runs(gpus: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the number of indices that follow one another."""
    ordered = sorted(gpus)
    start = 0
    for place in range(1, len(ordered) + 1):
        if place == len(ordered) or ordered[place] != ordered[place - 1] + 1:
            yield ordered[start], place - start
            start = place
