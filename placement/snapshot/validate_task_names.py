"""Rules for the names that tasks have in the system that their job is from."""

from __future__ import annotations

from collections.abc import Iterator

from placement.snapshot.fields import distinct, name
from placement.snapshot.report import Found, many, show, step, suggestion
from placement.snapshot.workload import Job, TaskGroup

MOST_DEPTH = 16
"""Levels of groups that are looked into; deeper ones are an error of their own."""


def judge_task_names(job: Job) -> Iterator[Found]:
    """Yield what is wrong with `Job.task_names` and `Job.claims`.

    A listed group has names for its tasks, or the first of them.
    """
    if job.count > 1:
        field = ".task_names" if job.task_names else ".claims"
        yield field, f"the entry stands for {show(job.count)} jobs", "give each job an entry of its own"
        return
    for task, claim in job.claims.items():
        claimed, slash, request = claim.partition("/")
        if not (claimed and slash and request):
            yield f".claims{step(task)}", f"found {show(claim)}", 'write it as "claim/request"'
    counts = dict(_counts(job.groups))
    for path, given in job.task_names.items():
        end = f".task_names{step(path)}"
        if path not in counts:
            what = f"there is no group with tasks in this job called {show(path)}"
            yield end, what, suggestion(path, sorted(counts))
        elif len(given) > counts[path]:
            what = f"{many(len(given), 'name')} for {many(counts[path], 'task')}"
            yield end, what, "name each task, or the first of them"
        for index, text in enumerate(given):
            yield from name(f"{end}[{index}]", text)
        yield from distinct(end, given, "task")


def _counts(
    groups: tuple[TaskGroup, ...], above: str = "", copies: int = 1, depth: int = 1
) -> Iterator[tuple[str, int]]:
    for group in groups:
        count = copies * max(0, group.count)
        if group.task is not None:
            yield f"{above}{group.name}", count
        if depth < MOST_DEPTH:
            yield from _counts(group.groups, f"{above}{group.name}/", count, depth + 1)
