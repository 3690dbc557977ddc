"""What queues use while jobs of a session come and go, and what they may use beside that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from placement.entitlement.cards import models_of, of_task
from placement.entitlement.least import Least, short_for, too_much
from placement.quota import ALL, Cards, Quotas, Short
from placement.snapshot import Job, Node, Queue, RunningTask
from placement.snapshot.leaves import leaf_tasks


class QueueUse:
    """Quotas, and the cards that running jobs of each queue have.

    Parameters
    ----------
    queues : sequence of Queue
        None where no quota is kept.
    nodes : iterable of Node
        One entry each.
    """

    def __init__(self, queues: Sequence[Queue], nodes: Iterable[Node]) -> None:
        self._quotas = Quotas(queues)
        listed = tuple(nodes) if queues else ()
        self._models = sorted({gpu.model for node in listed for gpu in node.gpus})
        self._of: Callable[[str, Sequence[int]], list[str]] = models_of(listed)

    def change(self, job: Job, sign: int) -> None:
        """Take account of a running job that starts, or with the sign -1 of one that is no longer there."""
        assert job.running is not None
        if self._quotas.limited(job.queue):
            self._change(job, job.running.tasks, sign)

    def _change(self, job: Job, places: Iterable[RunningTask], sign: int) -> None:
        for amounts in self._amounts(job, places):
            self._quotas.change(job.queue, amounts, sign)

    def _amounts(self, job: Job, places: Iterable[RunningTask]) -> Iterable[Mapping[str, Cards]]:
        tasks = dict(leaf_tasks(job.groups))
        return [of_task(tasks[place.group], self._of(place.node, place.gpus)) for place in places if place.gpus]

    def room(self, queue: str) -> dict[str, Cards]:
        """Return how many more cards a queue may use now, by model, and of all in `placement.quota.ALL`.

        What has no limit is not named; that is all where the queue has none.
        """
        if not self._quotas.limited(queue):
            return {}
        models = [*self._models, ALL] if self._quotas.by_model(queue) else [ALL]
        rooms = {model: self._quotas.room(queue, model) for model in models}
        return {model: room for model, room in rooms.items() if room is not None}

    def short(
        self,
        queue: str,
        takes: Sequence[Cards],
        where: Sequence[frozenset[str]],
        least: Least,
        room: Mapping[str, Cards],
    ) -> Short | None:
        """Return by how much a job needs more, wherever it is placed, than its queue may use.

        Parameters
        ----------
        queue : str
        takes : sequence of int or Fraction
            Cards that a task of each leaf takes.
        where : sequence of frozenset of str
            Models that it may be on.
        least : callable
            Gives the least that the job needs, from what a task of each leaf takes.
        room : mapping of str to int or Fraction
            See `room`.
        """
        inside = [models if models <= room.keys() else frozenset[str]() for models in where]
        found = too_much(takes, inside, ALL if ALL in room else None, room, least)
        if found is None:
            return None
        owners = [(model, self._quotas.tightest(queue, model)) for model in found[0]]
        return short_for([("quota", owner[1], model) for model, owner in owners if owner is not None], found[1])

    def exceeded(self, jobs: Iterable[tuple[Job, Iterable[RunningTask]]]) -> Short | None:
        """Return a quota that jobs would exceed where they are placed, beside what runs; None where they keep to all.

        Nothing may be exceeded that is not exceeded now, nor by more.
        """
        done: list[tuple[str, Mapping[str, Cards]]] = []
        try:
            for job, places in jobs:
                if not self._quotas.limited(job.queue):
                    continue
                for amounts in self._amounts(job, places):
                    found = self._quotas.short_by(job.queue, amounts)
                    if found is not None:
                        return found
                    self._quotas.change(job.queue, amounts)
                    done.append((job.queue, amounts))
            return None
        finally:
            for queue, amounts in done:
                self._quotas.change(queue, amounts, -1)
