"""Limits: what is in use in a domain, running work included, stays within the snapshot's caps on it.

Where running work alone exceeds a cap, new work may add nothing to it.
"""

from __future__ import annotations

from collections.abc import Iterator

from placement.check.case.case import Case
from placement.check.loads.capacity import amount, label
from placement.check.violation import Violation, show
from placement.snapshot import DomainLimit

RULE = "limits"


def judge(case: Case) -> Iterator[Violation]:
    """Yield every cap that new tasks exceed."""
    for index, caps in enumerate(case.facts.caps):
        domain = name(case.facts.snapshot.limits[index])
        for resource, cap in caps.items():
            new, running = (part.caps[index].get(resource, 0) for part in (case.load.new, case.load.running))
            if new > 0 and new + running > cap:
                taken, before, allowed = (
                    amount(case.facts, resource, number) for number in (new + running, running, cap)
                )
                already = f" ({before} of it by running work)" if running else ""
                what = f"{domain}: {label(resource)} in use adds up to {taken}{already}, at most {allowed}"
                yield Violation(RULE, path(index, resource), what)


def name(limit: DomainLimit) -> str:
    """Return the name of a limit's domain."""
    return f"{show(limit.level)} {show(limit.domain)}" if limit.domain else show(limit.level)


def path(index: int, resource: str) -> str:
    """Return the place of a cap in the snapshot."""
    inner = f"extended.{label(resource)}" if resource.startswith("extended:") else resource
    return f"limits[{index}].{inner}"
