"""What jobs are called, which of them wait for which, and the tasks of arrays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from placement.formats.kubernetes.objects import Item
from placement.formats.ledger import Ledger
from placement.formats.slurm import states
from placement.formats.slurm.numbers import whole, wrong
from placement.formats.slurm.records import JobRecord
from placement.snapshot.report import show

MOST_TASKS = 10**5
"""Tasks of arrays that wait, in all files."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A job of the snapshot to be.

    Attributes
    ----------
    name : str
        Slurm's own: ``1234``, ``1234_7`` of an array, ``1234+1`` of a heterogeneous job.
    holds : bool
        Whether it has devices; else it waits.
    item : Item
    """

    name: str
    holds: bool
    item: Item[JobRecord]


def entries(items: Iterable[Item[JobRecord]], ledger: Ledger) -> dict[str, Entry]:
    """Return the jobs that have not ended, by name, in the order of the files.

    Raises
    ------
    InputError
        If a job has no number, or arrays have more than `MOST_TASKS` tasks that wait.
    """
    found: dict[str, Entry] = {}
    ended = tasks = 0
    for item in items:
        kind, unknown = states.of_job(item.value.job_state)
        if unknown or not kind:
            ledger.contradiction("a job is in a state that is not known", "that it runs if it has nodes", item.where)
            kind = kind or ("holds" if item.value.nodes else "ended")
        if kind == "ended":
            ended += 1
            continue
        names = _names(item, kind == "waits", ledger)
        tasks += len(names) if len(names) > 1 else 0
        if tasks > MOST_TASKS:
            raise wrong(item, "array_task_string", f"more than {MOST_TASKS:,} tasks of arrays wait")
        for name in names:
            known = found.get(name)
            if known is not None and known.holds != (kind == "holds"):
                ledger.contradiction("two records of a job, of which only one runs", "that it runs", item.where)
            if known is None or (kind == "holds" and not known.holds):
                found[name] = Entry(name, kind == "holds", item)
    ledger.read("jobs that run", count=sum(entry.holds for entry in found.values()))
    ledger.read("jobs that wait", count=sum(not entry.holds for entry in found.values()))
    ledger.read("jobs that have ended, and hold nothing", count=ended)
    return found


def _names(item: Item[JobRecord], waits: bool, ledger: Ledger) -> tuple[str, ...]:
    job = item.value
    number = whole(item, "job_id", job.job_id)
    if not number:
        raise wrong(item, "job_id", f"found {show(job.job_id)}, expected the number of a job")
    array = whole(item, "array_job_id", job.array_job_id)
    if array:
        task = whole(item, "array_task_id", job.array_task_id)
        if task is not None:
            return (f"{array}_{task}",)
        if waits and job.array_task_string:
            if "%" in job.array_task_string or whole(item, "array_max_tasks", job.array_max_tasks):
                what = "how many tasks of an array run at once"
                ledger.unsupported(what, "a snapshot has no place for it", item.where, item.file)
            return tuple(f"{array}_{task}" for task in _tasks(item, job.array_task_string, ledger))
    het = whole(item, "het_job_id", job.het_job_id)
    if het:
        if waits:
            what = "parts of a heterogeneous job start together"
            ledger.unsupported(what, "each is a job of its own here", item.where, item.file)
        return (f"{het}+{whole(item, 'het_job_offset', job.het_job_offset) or 0}",)
    return (str(number),)


def _tasks(item: Item[JobRecord], text: str, ledger: Ledger) -> tuple[int, ...]:
    """Return the tasks that ``1-5,9,20-30:5%2`` lists."""
    found: dict[int, None] = {}
    plain = text.partition("%")[0].strip().strip("[]")
    if plain.endswith("..."):
        ledger.contradiction("the list of an array's tasks breaks off", "those that it lists", item.where)
        plain = plain.removesuffix("...").rstrip(",-")
    for part in plain.split(","):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", part.strip(), re.ASCII)
        low, high, step = (int(match[1]), int(match[2] or match[1]), int(match[3] or 1)) if match else (1, 0, 1)
        if high < low or step < 1:
            raise wrong(item, "array_task_string", f"{show(part, 20)} is no task and no range of them")
        if (high - low) // step + len(found) >= MOST_TASKS:
            raise wrong(item, "array_task_string", f"more than {MOST_TASKS:,} tasks of arrays wait")
        found |= dict.fromkeys(range(low, high + 1, step))
    return tuple(found)


class Dependencies:
    """Which jobs a job waits for."""

    def __init__(self, found: Mapping[str, Entry]) -> None:
        self._found = found
        self._families: dict[str, list[str]] = {}
        for name, entry in found.items():
            base = re.split("[_+]", name)[0]
            alone = str(whole(entry.item, "job_id", entry.item.value.job_id))
            for key in dict.fromkeys((base, alone)):
                if key != name:
                    self._families.setdefault(key, []).append(name)

    def of(self, entry: Entry, ledger: Ledger) -> tuple[str, ...]:
        """Return the jobs that must end before one starts.

        The forms are those of ``sbatch --dependency``, with the state of each in parentheses behind it.
        """
        text = (entry.item.value.dependency or "").strip()
        if text in ("", "(null)"):
            return ()
        where, file = entry.item.where, entry.item.file
        after: dict[str, None] = {}
        if "?" in text:
            ledger.unsupported("a job that waits for any of several", "it waits for all of them", where, file)
        for part in re.split("[,?]", text):
            kind, _, rest = part.strip().partition(":")
            if kind.startswith("singleton"):
                ledger.unsupported("a job that waits for those of its name", "it does not wait here", where, file)
                continue
            if kind not in ("after", "afterany", "afterok", "afternotok", "aftercorr", "afterburstbuffer"):
                raise wrong(entry.item, "dependency", f"{show(part, 40)} is no form of dependency")
            if kind == "after":
                ledger.assumed("a job that waits for the start of another", "it waits for its end", where)
            for other in rest.split(":"):
                match = re.fullmatch(r"(\d{1,12})(?:_(\d{1,9}|\*))?(\+\d+)?(?:\((\w+)\))?", other.strip(), re.ASCII)
                if match is None:
                    raise wrong(entry.item, "dependency", f"{show(other, 40)} is no job in a dependency")
                if match[4] == "fulfilled":
                    continue
                if match[4] == "failed":
                    what = "a job that waits for what cannot happen"
                    ledger.unsupported(what, "it may start here", where, file)
                    continue
                names = self._jobs(match[1], match[2])
                if not names:
                    ledger.assumed("a job that waits for one that is in no file", "that one has ended", where)
                after |= dict.fromkeys(name for name in names if name != entry.name)
        return tuple(after)

    def _jobs(self, number: str, task: str | None) -> list[str]:
        number = str(int(number))
        if task not in (None, "*"):
            name = f"{number}_{int(task or 0)}"
            return [name] if name in self._found else []
        return ([number] if number in self._found else []) + self._families.get(number, [])
