"""Rounds by a fair allocation over kinds of nodes, as in Gavel."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from placement.instance import Ints
from placement.scheduling.desk import NEVER, Desk
from placement.scheduling.policies import evicting
from placement.scheduling.policies.fair_shares import Kinds, fair_shares

ROUND = 360_000
"""Length of a round, in milliseconds."""

ROUNDS = 1000
"""Most rounds in the longest work that is left; a round is longer where that takes it."""


@dataclass(frozen=True, slots=True)
class Gavel:
    """In rounds of six minutes, each job gets the kind of nodes of which it has had least of its share.

    The shares of time on each kind are those of `fair_shares`, made anew in the round after jobs came or went. In each
    round pairs of jobs and kinds are gone through by share over what was received of it, and a job gets a kind while
    there are cards enough. Jobs that run on theirs stay; others are stopped, the least deserving first, for those that
    would not start otherwise; what is then left goes to whoever fits. Nothing starts between rounds.

    A job that would keep no work of its stretch is not stopped, since Gavel saves work at the end of each round and it
    does not. Rounds are longer for work of more than 1,000 of them.

    Source: Narayanan and others, Gavel (OSDI 2020; stanford-futuredata/gavel): the policy of max-min fairness with the
    mechanism of rounds, without sharing of cards.
    """

    name: str = "gavel"
    period: int = 0

    def decide(self, desk: Desk) -> None:
        """Start and stop jobs at the beginning of a round."""
        rounds = desk.memory.get(self.name) or desk.memory.setdefault(self.name, _Rounds(Kinds(desk)))
        if desk.now >= rounds.following:
            rounds.go_on(desk)
            lengths = [live.expected - desk.now for live in desk.live.values() if live.expected < NEVER]
            if lengths and desk.waiting:
                lengths += [desk.length(job) for job in desk.waiting]
                rounds.following = desk.now + max(ROUND, math.ceil(max(lengths) / ROUNDS))
        if desk.waiting and rounds.following > desk.now:
            desk.again = rounds.following


def _by_submit(desk: Desk, job: int) -> int:
    return int(desk.work.submit[job])


class _Rounds:
    """What is known from round to round: when the next begins, the shares, and what was received of them."""

    def __init__(self, kinds: Kinds) -> None:
        self.kinds, self.following = kinds, 0
        self._shares: dict[int, list[float]] = {}
        self._since = self._last = 0
        self._received: dict[tuple[int, int], int] = defaultdict(int)

    def go_on(self, desk: Desk) -> None:
        """Begin a round."""
        self._receive(desk)
        held = [job for job in desk.live if not (desk.may_stop(job) and desk.saves(job))]
        left = list(self.kinds.units)
        for job in held:
            for node, units in desk.units(job, desk.live[job].tasks):
                left[self.kinds.of_node[node]] -= units
        self._share(desk)
        worth, submit = self._worth(desk), desk.work.submit.tolist()
        chosen: dict[int, int] = {}
        kept = set(held)
        for job, kind in sorted(worth, key=lambda pair: (-worth[pair], submit[pair[0]], pair)):
            if job not in chosen and job not in kept and desk.cards(job) <= left[kind]:
                chosen[job] = kind
                left[kind] -= desk.cards(job)
        losers = [job for job in desk.live if job not in kept and chosen.get(job, -1) not in self._kinds_of(desk, job)]
        losers.sort(key=lambda job: (max(worth.get((job, kind), 0.0) for kind in self._kinds_of(desk, job)), -job))
        for job, kind in chosen.items():
            if job in desk.waiting:
                self._start(desk, job, self.kinds.nodes[kind], losers)
        turns = desk.turns(_by_submit)
        while turns.head() is not None:
            job = turns.take()
            if not desk.start(job):
                turns.refuse(job)

    def _start(self, desk: Desk, job: int, nodes: Ints, losers: list[int]) -> None:
        """Start a job on some nodes, and stop for that no more jobs that lost than must be."""
        tasks = desk.fit(job, nodes)
        if tasks is not None:
            desk.settle(job, tasks)
            return
        victims = evicting.fewest(desk, job, losers, nodes)
        if victims:
            evicting.start_instead(desk, job, victims, nodes)
            for victim in victims:
                losers.remove(victim)

    def _kinds_of(self, desk: Desk, job: int) -> set[int]:
        return {self.kinds.of_node[spot[0]] for _, _, spot in desk.live[job].tasks}

    def _receive(self, desk: Desk) -> None:
        for job, live in desk.live.items():
            for kind in self._kinds_of(desk, job):
                self._received[job, kind] += desk.now - max(live.start, self._last)
        self._last = desk.now

    def _share(self, desk: Desk) -> None:
        """Share anew where jobs came or went."""
        jobs = {*desk.waiting, *(job for job in desk.live if desk.stoppable_from(job) < NEVER)}
        if jobs == self._shares.keys():
            return
        units = list(self.kinds.units)
        for job in desk.live.keys() - jobs:
            for node, taken in desk.units(job, desk.live[job].tasks):
                units[self.kinds.of_node[node]] -= taken
        self._shares = fair_shares(desk, self.kinds, sorted(jobs), [max(0, one) for one in units])
        self._received.clear()
        self._since = desk.now

    def _worth(self, desk: Desk) -> dict[tuple[int, int], float]:
        """Return the share over the part of the time that was received of it, by job and kind."""
        time = max(1, desk.now - self._since)
        return {
            (job, kind): share * time / max(self._received[job, kind], 1e-9 * time)
            for job, shares in self._shares.items()
            for kind, share in enumerate(shares)
            if share > 0
        }
