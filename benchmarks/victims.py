"""Cases of other schedulers in which running work makes room, one by one: what `benchmarks/cases.py` does with them."""

from __future__ import annotations

from collections import Counter

import table
from translate import victims
from translate.common import Case
from translate.victims import ACTIONS as ACTIONS

import placement as pl

AGREES = "agrees"
FEWER = "ours evicts fewer"
MORE_STARTS = "ours starts more, checked"
SHARES = "shares by weight decide"
WRONG = ("ours starts fewer", "ours evicts more", "refused by the check")
"""Outcomes that nothing excuses."""


def row_of(kind: str, case: Case) -> table.Row:
    """Return what became of a case.

    Raises
    ------
    InexpressibleError, UntranslatedError
        See `translate.victims.translate`.
    """
    asked = victims.translate(kind, case)
    snapshot = pl.loads(pl.dumps(asked.snapshot))
    found = pl.preempt(snapshot, move=asked.move, reclaim="fair_share" if case["action"] == "reclaim" else "quota")
    started = dict.fromkeys(found.started, 1)
    evicted = sum(len(one.tasks) for one in found.evictions)
    theirs = set(started) if asked.started is None else {name for name, pods in asked.started.items() if pods}
    verdict = _verdict(asked, set(started), theirs, evicted)
    if pl.check(found.after, found.plan) or not found.proven or found.gap:
        verdict = WRONG[2]
    return {
        "source": f"{len(theirs)}, {asked.evictions} out (most {asked.most})",
        "ours": f"{len(started)}, {evicted} out",
        "proof": "proven" if found.proven else "open",
        "levels": case["action"],
        "outcome": verdict,
        "why": _said(found),
    }


def _verdict(asked: victims.Asked, ours: set[str], theirs: set[str], evicted: int) -> str:
    fewer, more, _ = WRONG
    rank = {job.name: job.priority for job in asked.snapshot.jobs}
    mine, others = (sorted((rank[name] for name in names), reverse=True) for names in (ours, theirs))
    if mine == others:
        if evicted > max(asked.evictions, asked.most):
            return SHARES if asked.shared else more
        return FEWER if evicted < asked.evictions else AGREES
    if asked.shared:
        return SHARES
    return MORE_STARTS if mine > others else fewer


def _said(found: pl.Preemption) -> str:
    kinds = Counter(one.kind for one in found.evictions)
    parts = [f"{number} {kind}" for kind, number in kinds.items()]
    return ", ".join([*parts, *(f"{one.job}: {one.reason}" for one in found.waiting)])
