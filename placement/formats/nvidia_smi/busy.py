"""Cards at work: held by stand-in jobs where no job of the snapshot is known to hold them.

A process on a card says that it is in use, and nothing of who started it or for how long.
"""

from __future__ import annotations

from collections.abc import Mapping

from placement.formats.ledger import Ledger
from placement.formats.nvidia_smi.apply import Held
from placement.formats.nvidia_smi.facts import Card, Facts
from placement.hardware import mig
from placement.snapshot import Gpu, Job, MigInstance, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.leaves import leaf_tasks

GROUP = "process"


def on_nodes(snapshot: Snapshot) -> Mapping[str, Held]:
    """Return which cards running tasks hold, by the name of the node, and which MIG instances of them."""
    held: dict[str, dict[int, frozenset[tuple[str, int]]]] = {}
    for job in snapshot.jobs:
        if job.running is None:
            continue
        profiles = {path: task.mig_profile for path, task in leaf_tasks(job.groups)}
        for place in job.running.tasks:
            cards = held.setdefault(place.node, {})
            for number, card in enumerate(place.gpus):
                starts = place.mig_starts[number : number + 1]
                mine = frozenset((profiles.get(place.group, ""), start) for start in starts)
                cards[card] = cards.get(card, frozenset()) | mine
    return held


def holding(node: Node, facts: Facts, held: Held, of_one: bool, believed: bool, ledger: Ledger) -> list[Job]:
    """Return a running job for each card that is at work and that nobody is known to hold.

    Parameters
    ----------
    node : Node
        With what is said of its cards.
    facts : Facts
    held : mapping
        What running tasks of the snapshot hold on it.
    of_one : bool
        Whether the facts are of this very node.
    believed : bool
        Whether a scheduler says what runs.
    ledger : Ledger
    """
    busy = {index: card for index, card in facts.cards.items() if card.busy}
    if not believed and any(card.busy is None for card in facts.cards.values()) and not busy:
        ledger.assumed("what runs on cards", "nothing: the output does not say it", facts.file.name)
    if not believed and facts.matrix is not None and not facts.cards:
        ledger.assumed("what runs on cards", "nothing: the output does not say it", facts.file.name)
    if busy and not of_one:
        ledger.unsupported("processes on cards", "the file is given for several nodes", facts.file.name)
        return []
    cards = [gpu for gpu in node.gpus for _ in range(gpu.count)]
    jobs = []
    for index, card in sorted(busy.items()):
        if index >= len(cards):
            continue  # the node has another number of cards, which has been said
        job = _job(node.name, index, cards[index], card, held)
        if job is None:
            continue
        if believed:
            what = "card at work that the scheduler believes to be free"
            ledger.contradiction(what, "nvidia-smi: a stand-in job holds it", card.where)
        else:
            ledger.assumed("job of the processes on a card", "a stand-in that holds it and never ends", card.where)
        jobs.append(job)
    return jobs


def _job(node: str, index: int, gpu: Gpu, card: Card, held: Held) -> Job | None:
    """Return the job that holds a card, or what nobody else holds of it; None where that is nothing."""
    tasks = [Task(gpus=1)]
    starts: list[tuple[int, ...]] = [()]
    if gpu.mig_enabled:
        taken = held.get(index, frozenset())
        mine = [one for one in _instances(gpu, card) if (one.profile, one.start) not in taken]
        if taken and not gpu.mig_layout:
            return None  # what runs there is known, and what else there is, is not
        tasks = [Task(gpus=1, mig_profile=one.profile) for one in mine]
        starts = [(one.start,) for one in mine]
    elif index in held:
        return None
    if not tasks:
        return None
    names = [GROUP if len(tasks) == 1 else f"{GROUP}{number}" for number in range(len(tasks))]
    return Job(
        name=f"nvidia-smi/{node}/gpu{index}",
        groups=tuple(TaskGroup(name=name, task=task) for name, task in zip(names, tasks, strict=True)),
        running=Running(
            tasks=tuple(
                RunningTask(group=name, index=0, node=node, gpus=(index,), mig_starts=start)
                for name, start in zip(names, starts, strict=True)
            )
        ),
    )


def _instances(gpu: Gpu, card: Card) -> list[MigInstance]:
    """Return the instances with processes; all of the card, where it is not said which, or what there are."""
    geometry = mig.geometry(gpu.model)
    if not gpu.mig_layout and geometry is not None:
        largest = max(geometry.profiles, key=lambda profile: (profile.size, profile.plain))
        return [MigInstance(profile=largest.name, start=largest.starts[0])]
    numbers = [one.id for one in card.instances or ()]
    layout = gpu.mig_layout
    if len(numbers) != len(layout) or not card.busy_instances or not card.busy_instances <= set(numbers):
        return list(layout)
    return [one for one, number in zip(layout, numbers, strict=True) if number in card.busy_instances]
