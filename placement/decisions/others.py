"""What waits and is not counted by consolidation, started beside what is: other tasks than MIG tasks, and tied ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from placement.errors import SolverError
from placement.solver import Result, Stop

if TYPE_CHECKING:
    from placement.decisions.consolidated import Case, Found


def with_others(case: Case, found: Found) -> Found:
    """Return the answer with what else starts in the room that it leaves, by the methods of `placement.solve`.

    Worth, cost and bound are on what counts, and stay as they are.
    """
    # not at the top: who only imports the package must not load the modelling language
    from placement.decisions.consolidated import plan_for, solved
    from placement.exact.mig.moves import counted
    from placement.exact.mig.places import only
    from placement.exact.mig.sliced import beside, joined, takes_instances

    then, first = found.then, found.result
    mine = set(counted(then))
    numbers = [number for number in range(len(then.job_classes)) if number not in mine]
    if not numbers:
        return found
    sliced = any(takes_instances(then, then.job_classes[number]) for number in numbers)
    left, _ = beside(only(then, numbers), then, first.assignment, sliced)
    for result in solved(left, case):
        stop = Stop.TIME if Stop.TIME in (first.stop, result.stop) else Stop.COMPLETE
        both = Result(joined(first.assignment, result.assignment), stop)
        try:
            plan = plan_for(case, found.answer.after, then, both)
        except SolverError:
            # the next best may pass, and without them the answer has passed
            continue
        return replace(found, answer=replace(found.answer, plan=plan), result=both)
    return found
