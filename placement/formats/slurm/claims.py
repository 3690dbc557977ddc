"""Records of running jobs to what each has on which node."""

from __future__ import annotations

from collections.abc import Mapping

from placement.formats.kubernetes.objects import Item
from placement.formats.ledger import Ledger
from placement.formats.slurm.gres import Gres, allocated, amount, parse, tres
from placement.formats.slurm.held import Claim
from placement.formats.slurm.hostlist import expand
from placement.formats.slurm.nodes import Host
from placement.formats.slurm.numbers import Field, bounded, whole
from placement.formats.slurm.records import Amounts, JobRecord, Share, Shares, texts

MEBI = 2**20


def claims(item: Item[JobRecord], hosts: Mapping[str, Host], ledger: Ledger) -> dict[str, Claim]:
    """Return what a running job has, by node.

    The numbers of its cards are in ``gres_detail``, one text for each node. Where these are missing, how many cards it
    has is what ``tres_alloc_str`` says, and what it asked for where that counts no GRES. Of two numbers the larger
    counts.
    """
    job = item.value
    names = expand(_nodes(job), item.file, f"{item.path}.nodes")
    if not names:
        ledger.contradiction("a job runs on no node", "it holds nothing", item.where)
        return {}
    known = [name for name in names if name in hosts]
    if len(known) < len(names):
        ledger.contradiction("a job runs on a node that is in no file", "the node is left out", item.where)
    gres = _gres(item, names, hosts, ledger)
    listed = job.job_resources.shares if job.job_resources is not None else []
    # the oldest versions number the nodes instead of naming them
    by_place = len(listed) == len(names) and not any(share.name or share.nodename for share in listed)
    shares = {names[place] if by_place else share.name or share.nodename: share for place, share in enumerate(listed)}
    total = tres(job.tres_alloc_str, item.file, f"{item.path}.tres_alloc_str")
    cpus = _total(item, "cpu", total, whole(item, "cpus", job.cpus) or 0)
    memory = _total(item, "mem", total, 0, MEBI) // MEBI
    found: dict[str, Claim] = {}
    for place, name in enumerate(names):
        share = shares.get(name)
        mine_cpus = -(-cpus // len(names)) if share is None else _cpus(item, share)
        mine_memory = -(-memory // len(names)) if share is None else _memory(item, share)
        if share is not None and not mine_cpus:
            mine_cpus = -(-cpus // len(names))
        if not mine_memory:
            mine_memory = _asked_memory(item, mine_cpus)
        bounded(item, "job_resources", mine_cpus)
        bounded(item, "memory_per_cpu", mine_memory)
        if name in hosts:
            found[name] = Claim(gres[place], mine_cpus, mine_memory, exclusive(job), item.where)
    return found


def exclusive(job: JobRecord) -> bool:
    """Return whether a job shares its nodes with nobody; or only with its user, which is taken for the same."""
    words: set[str] = set()
    for field, number in ((job.exclusive, 1), (job.shared, 0)):
        if isinstance(field, int):
            words |= {"true"} if field == number else set()
        else:
            words |= {text.lower() for text in texts(field)}
    resources = job.job_resources
    whole_nodes = resources is not None and isinstance(resources.nodes, Shares) and resources.nodes.whole is True
    return whole_nodes or bool(words & {"true", "none", "user", "mcs", "topo", "exclusive"})


def _nodes(job: JobRecord) -> str:
    if job.nodes:
        return job.nodes
    resources = job.job_resources
    if resources is None:
        return ""
    return (resources.nodes.hosts if isinstance(resources.nodes, Shares) else resources.nodes) or ""


def _gres(
    item: Item[JobRecord], names: tuple[str, ...], hosts: Mapping[str, Host], ledger: Ledger
) -> list[tuple[Gres, ...]]:
    job = item.value
    detail = job.gres_detail or []
    total = allocated(job.tres_alloc_str, item.file, f"{item.path}.tres_alloc_str")
    if len(detail) == len(names):
        listed = [parse(text, item.file, f"{item.path}.gres_detail[{at}]") for at, text in enumerate(detail)]
        missing = _sum(total) - sum(map(_sum, listed))
        if missing <= 0:
            return listed
        ledger.contradiction("gres_detail has fewer cards than the job has in all", "as many as in all", item.where)
        if len(names) == 1:
            return [(*listed[0], Gres("gpu", "", missing))]
    elif detail:
        ledger.contradiction("gres_detail has not one text for each node", "how much the job has in all", item.where)
    per_node = parse(job.tres_per_node, item.file, f"{item.path}.tres_per_node")
    if total and _sum(total) != _sum(per_node) * len(names):
        return _split(total, names, hosts, item, ledger)
    if per_node:
        return [per_node for _ in names]
    asked = parse(job.tres_per_job, item.file, f"{item.path}.tres_per_job")
    for field, times in (("tres_per_task", "tasks"), ("tres_per_socket", "sockets_per_node")):
        if not asked:
            each = parse(getattr(job, field), item.file, f"{item.path}.{field}")
            count = whole(item, times, getattr(job, times), short=field == "tres_per_socket") or 1
            # sockets count on each node, tasks in the whole job
            count *= len(names) if field == "tres_per_socket" else 1
            asked = tuple(Gres(gres.name, gres.type, gres.count * count) for gres in each)
    if asked:
        ledger.assumed("cards that a running job has", "those that it asked for", item.where)
    return _split(asked, names, hosts, item, ledger)


def _sum(gres: tuple[Gres, ...]) -> int:
    return sum(one.count for one in gres if one.name == "gpu")


def _split(
    total: tuple[Gres, ...], names: tuple[str, ...], hosts: Mapping[str, Host], item: Item[JobRecord], ledger: Ledger
) -> list[tuple[Gres, ...]]:
    """Return what a job has in all, split over its nodes: as evenly as what they say is in use allows.

    Where they say less than the job has, as evenly as they can hold it.
    """
    if len(names) == 1 or not total:
        return [total for _ in names]
    ledger.assumed("what a job has on each of its nodes", "an equal part of what it has in all", item.where)
    found: list[list[Gres]] = [[] for _ in names]
    for gres in total:
        room = [_room(gres, hosts.get(name)) for name in names]
        in_use = [min(most, _in_use(gres, hosts.get(name), most)) for name, most in zip(names, room, strict=True)]
        if sum(in_use) >= gres.count:
            room = in_use
        left = gres.count
        for behind, place in zip(
            range(len(names), 0, -1), sorted(range(len(names)), key=lambda place: (room[place], place)), strict=True
        ):
            count = min(room[place], -(-left // behind))
            found[place].append(Gres(gres.name, gres.type, count))
            left -= count
        if left > 0:
            ledger.contradiction("more cards are in use than the node has", "the node", item.where)
    return [tuple(gres) for gres in found]


def _room(gres: Gres, host: Host | None) -> int:
    """Return how much of a job's GRES a node could hold."""
    if host is None:
        return gres.count
    return sum(one.count for one in host.gres if one.name == gres.name and gres.type in ("", one.type))


def _in_use(gres: Gres, host: Host | None, default: int) -> int:
    """Return how much of it is in use there, by whomever."""
    if host is None or host.used is None:
        return default
    # a list of what is in use may leave the types out
    types = {"", gres.type}
    return sum(one.count for one in host.used if one.name == gres.name and (not gres.type or one.type in types))


def _total(item: Item[JobRecord], name: str, total: Mapping[str, str], default: int, unit: int = 1) -> int:
    text = total.get(name)
    return default if text is None else amount(text, item.file, f"{item.path}.tres_alloc_str", unit)


def _cpus(item: Item[JobRecord], share: Share) -> int:
    said: tuple[Field, ...] = (share.cpus_used,)
    said += (share.cpus.count, share.cpus.used) if isinstance(share.cpus, Amounts) else (share.cpus,)
    return max(whole(item, "job_resources", field) or 0 for field in said)


def _memory(item: Item[JobRecord], share: Share) -> int:
    said: tuple[Field, ...] = (share.memory_allocated,)
    said += (share.memory.allocated,) if isinstance(share.memory, Amounts) else (share.memory,)
    return max(whole(item, "job_resources", field) or 0 for field in said)


def _asked_memory(item: Item[JobRecord], cpus: int) -> int:
    job = item.value
    per_node = whole(item, "memory_per_node", job.memory_per_node)
    per_cpu = whole(item, "memory_per_cpu", job.memory_per_cpu)
    return per_node or (per_cpu or 0) * cpus
