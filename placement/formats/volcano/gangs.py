"""Pod groups and jobs of Volcano: which pods start together, how many at least, and how near to one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from placement.errors import InputError
from placement.formats.kubernetes.objects import Item
from placement.formats.kubernetes.parts import Gang, GangGroup
from placement.formats.kubernetes.peers import NO_GROUP, Found, group_of, least_of_each, plain, wrong
from placement.formats.ledger import Ledger
from placement.formats.volcano.hypernodes import Tree
from placement.formats.volcano.membership import PREEMPTABLE, QUEUE, Groups, policies_of, said, task_name
from placement.formats.volcano.records import JobTask, PodGroup, SubGroupPolicy, VolcanoJob
from placement.snapshot import Topology

OVER = ("Completed", "Failed", "Aborted", "Terminated", "Completing", "Aborting", "Terminating")
"""Phases of a job that starts no pods any more."""

DEFAULT_QUEUE = "default"

MOST = 1_000_000
"""Pods of one gang."""


class Reader:
    """Makes gangs.

    Parameters
    ----------
    groups : Groups
    found : mapping of str to Found
        Pods by gang.
    tree : Tree
    classes : (dict of str to int, int or None)
        Priorities.
    ledger : Ledger
    has_default : bool
        Whether there is a queue for what names none.
    """

    def __init__(
        self,
        groups: Groups,
        found: Mapping[str, Found],
        tree: Tree,
        classes: tuple[Mapping[str, int], int | None],
        ledger: Ledger,
        has_default: bool = False,
    ) -> None:
        self._has_default = has_default
        self._groups = groups
        self._found = found
        self._tree = tree
        self._classes, self._default = classes
        self._ledger = ledger

    def gangs(self) -> Iterator[Gang]:
        """Yield the gang of each pod group, and of each job without one."""
        covered = set()
        for key, item in self._groups.pod_groups.items():
            job = self._groups.job_of(key, item)
            if job is not None:
                covered.add(job.value.metadata.key)
            gang = self._of_group(key, item, job)
            if gang is not None:
                yield gang
        for key, job in self._groups.jobs.items():
            if key not in covered:
                gang = self._of_job(key, job)
                if gang is not None:
                    yield gang

    def _of_group(self, key: str, item: Item[PodGroup], job: Item[VolcanoJob] | None) -> Gang | None:
        spec = item.value.spec
        phase = (item.value.status.phase if item.value.status else None) or ""
        if phase == "Completed" and not self._alive(key):
            self._ledger.ignored("pod groups that have ended", "they hold nothing", item.where)
            return None
        if spec.topology_affinity:
            self._ledger.unsupported("topologyAffinity of a pod group", "not read", item.where)
        if spec.min_resources:
            self._ledger.ignored("minResources of a pod group", "its pods say what they need", item.where)
        return self._gang(
            key,
            item,
            job,
            least=spec.min_member,
            of_task=spec.min_task_member or {},
            policies=spec.sub_group_policy or [],
            topology=self._tree.rules(spec.network_topology, self._ledger, item.where),
            queue=spec.queue or said(item.value.metadata, QUEUE),
            class_name=spec.priority_class_name or (job.value.spec.priority_class_name if job else None),
        )

    def _of_job(self, key: str, item: Item[VolcanoJob]) -> Gang | None:
        spec = item.value.spec
        return self._gang(
            key,
            item,
            item,
            least=spec.min_available,
            of_task={
                task_name(task, number): task.replicas if task.min_available is None else task.min_available
                for number, task in enumerate(spec.tasks or ())
            },
            policies=policies_of(item.value),
            topology=self._tree.rules(spec.network_topology, self._ledger, item.where),
            queue=spec.queue or "",
            class_name=spec.priority_class_name,
        )

    def _alive(self, key: str) -> int:
        return sum(self._found[key].alive.values()) if key in self._found else 0

    def _gang(
        self,
        key: str,
        item: Item[PodGroup] | Item[VolcanoJob],
        job: Item[VolcanoJob] | None,
        *,
        least: int | None,
        of_task: Mapping[str, int],
        policies: Sequence[SubGroupPolicy],
        topology: Topology | None,
        queue: str,
        class_name: str | None,
    ) -> Gang | None:
        found = self._found.get(key, Found(Counter(), Counter()))
        tasks = self._tasks(job)
        counts = self._counts(tasks, found, policies)
        state = job.value.status.state if job and job.value.status else None
        if not counts or (state is not None and state.phase in OVER and not self._alive(key)):
            self._ledger.ignored("pod groups and jobs without pods", "there is nothing to place", item.where)
            return None
        for number in (least or 0, *of_task.values()):
            if not 0 <= number <= MOST:
                raise wrong(item, f"{number} pods are needed", f"give 0 to {MOST:,}", "spec")
        done = sum(found.succeeded.values())
        total = sum(counts.values())
        if least is None:
            least = total + done if isinstance(item.value, VolcanoJob) else 1
        needed = max(1, least - done)
        if needed > total:
            first = next(iter(counts))
            counts[first] += needed - total
            if len(counts) > 1:
                self._ledger.assumed("pods of a gang that are not there yet", "they are of its first group", item.where)
        self._note_tasks(tasks, item.where)
        groups, min_groups = self._arranged(counts, found, needed, of_task, policies, tasks, item.where)
        alone = len(groups) == 1
        if alone and topology is not None and not groups[0].topology:
            groups = (with_topology(groups[0], topology),)
            topology = None
        return Gang(
            key=key,
            groups=groups,
            queue=queue or (DEFAULT_QUEUE if self._has_default else ""),
            priority=self._priority(class_name, item.where),
            topology=topology,
            preemptible=self._preemptible(item),
            where=item.where,
            min_groups=min_groups,
        )

    def _tasks(self, job: Item[VolcanoJob] | None) -> dict[str, JobTask]:
        """Return the tasks of a job by the name of their group."""
        if job is None:
            return {}
        found: dict[str, JobTask] = {}
        for number, task in enumerate(job.value.spec.tasks or ()):
            if not 0 <= task.replicas <= MOST:
                raise wrong(job, f"{task.replicas} replicas", f"give 0 to {MOST:,}", f"spec.tasks[{number}].replicas")
            name = plain(task_name(task, number))
            if name in found:
                raise wrong(job, f"two tasks are called {name}", "name them apart", f"spec.tasks[{number}].name")
            found[name] = task
        return found

    def _counts(self, tasks: Mapping[str, JobTask], found: Found, policies: Sequence[SubGroupPolicy]) -> Counter[str]:
        """Return how many pods each group wants: those that are there, and those that a job is yet to make."""
        counts: Counter[str] = Counter()
        divided = {plain(policy.name) for policy in policies}
        for name, task in tasks.items():
            wanted = task.replicas - found.succeeded[name]
            if task.template is None or task.template.spec is None:
                continue  # only the pods that are there say what they ask for
            if task.partition_policy is not None and name in divided:
                size = max(1, task.partition_policy.partition_size)
                for part in range(min(max(0, task.partition_policy.total_partitions), MOST)):
                    path = f"{name}/{part}"
                    counts[path] = max(found.alive[path], size - found.succeeded[path])
            elif wanted > 0 or found.alive[name]:
                counts[name] = max(found.alive[name], wanted)
        for path, number in found.alive.items():
            counts[path] = max(counts[path], number)
        return Counter({path: number for path, number in counts.items() if number > 0})

    def _arranged(
        self,
        counts: Counter[str],
        found: Found,
        needed: int,
        of_task: Mapping[str, int],
        policies: Sequence[SubGroupPolicy],
        tasks: Mapping[str, JobTask],
        where: str,
    ) -> tuple[tuple[GangGroup, ...], int | None]:
        """Return the groups of a gang, and how many of them it needs."""
        by_policy = {plain(policy.name): policy for policy in policies}
        loose = {path: number for path, number in counts.items() if path.partition("/")[0] not in by_policy}
        if len(loose) == len(counts):
            stated = {
                plain(name): number - found.succeeded[plain(name)]
                for name, number in of_task.items()
                if plain(name) in loose and number > found.succeeded[plain(name)]
            }
            for name, number in stated.items():
                loose[name] = max(loose[name], number)
            mins, min_groups = least_of_each(needed, loose, stated, self._ledger, where)
            flat = [self._leaf(name, loose[name], least, found, None, where) for name, least in mins.items()]
            return tuple(self._templated(flat, tasks)), min_groups
        groups = []
        for name, policy in by_policy.items():
            paths = [path for path in counts if path.partition("/")[0] == name]
            if paths:
                groups.append(self._divided(name, policy, paths, counts, found, where))
        if needed >= sum(counts.values()):
            rest = [self._leaf(name, number, number, found, None, where) for name, number in loose.items()]
            return tuple(self._templated([*groups, *rest], tasks)), None
        rest = [self._leaf(name, number, 1, found, None, where) for name, number in loose.items()]
        arranged, min_groups = self._fewest([*groups, *rest], by_policy, needed, where)
        return tuple(self._templated(arranged, tasks)), min_groups

    def _leaf(
        self, path: str, count: int, least: int, found: Found, topology: Topology | None, where: str
    ) -> GangGroup:
        last = path.rpartition("/")[2]
        return group_of(last, count, least, found.alive[path], topology, self._ledger, where)

    def _divided(
        self,
        name: str,
        policy: SubGroupPolicy,
        paths: Sequence[str],
        counts: Mapping[str, int],
        found: Found,
        where: str,
    ) -> GangGroup:
        """Return the group of a policy, with one group for each subgroup."""
        rules = self._tree.rules(policy.network_topology, self._ledger, where)
        for number in (policy.sub_group_size or 0, policy.min_sub_groups or 0):
            if not 0 <= number <= MOST:
                raise InputError.one(f"{number} in a subGroupPolicy", f"give 0 to {MOST:,}", path=where)
        size = policy.sub_group_size
        if size and any(counts[path] < size for path in paths):
            self._ledger.assumed("a subgroup of fewer pods than its size", "those that are there are enough", where)
        inner = tuple(
            self._leaf(path, counts[path], min(size or counts[path], counts[path]), found, rules, where)
            for path in paths
        )
        return inner[0] if list(paths) == [name] else GangGroup(name, groups=inner)

    def _fewest(
        self, groups: Sequence[GangGroup], by_policy: Mapping[str, SubGroupPolicy], needed: int, where: str
    ) -> tuple[list[GangGroup], int | None]:
        """Return groups with how many subgroups of each are needed, and how many of the groups.

        A subgroup starts with its least number or not at all. Whatever subgroups make up the number that is needed are
        enough; a snapshot states it policy by policy, so the first ones are asked for more.
        """
        sizes = [sorted(_least(one) for one in group.groups or (group,)) for group in groups]
        stated = [(by_policy[group.name].min_sub_groups or 0) if group.name in by_policy else 0 for group in groups]
        if not any(stated) and len(groups) > 1 and needed <= min(one[0] for one in sizes):
            return [replace(group, min_groups=1) if group.groups else group for group in groups], 1
        numbers = [min(len(one), max(1, number)) for one, number in zip(sizes, stated, strict=True)]
        if any(number > len(one) for one, number in zip(sizes, stated, strict=True)):
            self._ledger.assumed("subgroups that are not there yet", "those that are there are enough", where)
        have = sum(sum(one[:number]) for one, number in zip(sizes, numbers, strict=True))
        if have < needed and len(groups) > 1:
            self._ledger.assumed(NO_GROUP, "the rest is needed from the first groups", where)
        for index, one in enumerate(sizes):
            while have < needed and numbers[index] < len(one):
                have += one[numbers[index]]
                numbers[index] += 1
        return [
            replace(group, min_groups=None if number == len(group.groups) else number) if group.groups else group
            for group, number in zip(groups, numbers, strict=True)
        ], None

    def _templated(self, groups: Sequence[GangGroup], tasks: Mapping[str, JobTask]) -> Iterator[GangGroup]:
        """Yield groups with what their pods will ask for, where a job says it."""
        for group in groups:
            task = tasks.get(group.name)
            spec = task.template.spec if task and task.template else None
            if spec is None:
                yield group
            elif group.groups:
                inner = tuple(replace(one, template=spec) for one in group.groups)
                yield replace(group, groups=inner)
            else:
                yield replace(group, template=spec)

    def _note_tasks(self, tasks: Mapping[str, JobTask], where: str) -> None:
        for task in tasks.values():
            if task.depends_on:
                self._ledger.unsupported("a task that starts after another of its job", "all start together", where)
            if task.topology_policy not in (None, "", "none"):
                self._ledger.unsupported("the NUMA policy of a task of a job", "that of the node counts", where)

    def _priority(self, name: str | None, where: str) -> int | None:
        if not name:
            return self._default
        if name not in self._classes:
            self._ledger.assumed("the value of a priority class that is not there", "that of the pods", where)
            return None
        return self._classes[name]

    def _preemptible(self, item: Item[PodGroup] | Item[VolcanoJob]) -> bool:
        text = said(item.value.metadata, PREEMPTABLE).lower()
        if not text:
            self._ledger.assumed("whether pods of Volcano may be preempted", "yes", item.where)
        return text in ("", "1", "t", "true")


def _least(group: GangGroup) -> int:
    return (group.count or 1) if group.min_count is None else group.min_count


def with_topology(group: GangGroup, topology: Topology) -> GangGroup:
    """Return a group that lies as the whole gang has to."""
    return replace(group, topology=topology)
