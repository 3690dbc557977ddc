"""States of nodes and jobs: what Slurm's words mean for who may use what.

Words are those of ``man sinfo`` and ``man squeue`` ("NODE STATE CODES", "JOB STATE CODES"), long and short.
"""

from __future__ import annotations

import re

from placement.formats.slurm.records import Texts, texts

_MARKS = {"*": "NOT_RESPONDING", "~": "POWERED_DOWN", "#": "POWERING_UP", "!": "POWER_DOWN", "%": "POWERING_DOWN"} | {
    "$": "MAINT",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}
"""Signs behind the state in what sinfo prints."""

_SHORT = {
    "ALLOC": "ALLOCATED",
    "BLOCK": "BLOCKED",
    "COMP": "COMPLETING",
    "DRNG": "DRAIN",
    "DRAINING": "DRAIN",
    "DRAINED": "DRAIN",
    "FAILG": "FAIL",
    "FAILING": "FAIL",
    "FUTR": "FUTURE",
    "INVAL": "INVALID_REG",
    "INVALID": "INVALID_REG",
    "MAINTENANCE": "MAINT",
    "MIX": "MIXED",
    "NO_RESPOND": "NOT_RESPONDING",
    "NPC": "PERFCTRS",
    "PLND": "PLANNED",
    "POW_DN": "POWERING_DOWN",
    "POW_UP": "POWERING_UP",
    "RESV": "RESERVED",
    "UNK": "UNKNOWN",
    "REBOOT": "REBOOT_REQUESTED",
}

UNUSABLE = frozenset(
    {
        *("DOWN", "DRAIN", "ERROR", "FAIL", "INVALID_REG", "MAINT", "NOT_RESPONDING", "UNKNOWN", "FUTURE"),
        *("DYNAMIC_FUTURE", "REBOOT_ISSUED", "REBOOT_REQUESTED", "POWERING_DOWN", "POWER_DOWN", "POWER_DRAIN"),
        *("BLOCKED", "PERFCTRS"),
    }
)
"""States of a node in which it takes no new work."""

NOTABLE = {
    "PLANNED": "it takes work here: backfill holds it for a job that waits",
    "POWERED_DOWN": "it takes work here: Slurm starts it when it is needed",
    "POWERING_UP": "it takes work here: Slurm starts it when it is needed",
    "COMPLETING": "what its ended jobs still hold is free here, but for what it says is in use",
}
"""States in which a node takes new work, though there is something to be said of it."""


def of_node(state: Texts, flags: Texts = None) -> frozenset[str]:
    """Return the states of a node in the long form.

    Examples
    --------
    >>> sorted(of_node("drain*")), sorted(of_node(["IDLE", "PLANNED"])), sorted(of_node("IDLE+DRAIN"))
    (['DRAIN', 'NOT_RESPONDING'], ['IDLE', 'PLANNED'], ['DRAIN', 'IDLE'])
    """
    found: set[str] = set()
    for text in (*texts(state), *texts(flags)):
        for word in re.split(r"[+|&]", text.upper()):
            plain = word.rstrip("".join(_MARKS))
            found |= {_MARKS[mark] for mark in word[len(plain) :]}
            if plain:
                found.add(_SHORT.get(plain, plain))
    return frozenset(found)


WAITS = frozenset({"PENDING", "PD", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RV_HOLD"})
HOLDS = frozenset(
    {
        *("RUNNING", "R", "SUSPENDED", "S", "COMPLETING", "CG", "CONFIGURING", "CF", "RESIZING", "SIGNALING", "SI"),
        *("STOPPED", "ST", "STAGE_OUT", "SO", "UPDATE_DB", "LAUNCH_FAILED", "EXPEDITING"),
    }
)
"""States of a job in which it has devices: a suspended job keeps its GPUs, one that completes is not rid of them."""

ENDED = frozenset(
    {
        *("COMPLETED", "CD", "CANCELLED", "CA", "FAILED", "F", "TIMEOUT", "TO", "NODE_FAIL", "NF", "PREEMPTED", "PR"),
        *("BOOT_FAIL", "BF", "DEADLINE", "DL", "OUT_OF_MEMORY", "OOM", "REVOKED", "RV", "RECONFIG_FAIL"),
    }
)


def of_job(state: Texts) -> tuple[str, str]:
    """Return whether a job ``"waits"``, ``"holds"`` devices or has ``"ended"``, and a word that is not known.

    Examples
    --------
    >>> of_job(["COMPLETED", "COMPLETING"]), of_job("PENDING"), of_job("strange")
    (('holds', ''), ('waits', ''), ('', 'STRANGE'))
    """
    words = {part for text in texts(state) for part in re.split(r"[+|&]", text.upper()) if part}
    unknown = sorted(words - WAITS - HOLDS - ENDED)
    for kind, known in (("holds", HOLDS), ("waits", WAITS), ("ended", ENDED)):
        if words & known:
            return kind, unknown[0] if unknown else ""
    return "", unknown[0] if unknown else ""
