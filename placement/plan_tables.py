"""What a plan says of its jobs beside their places, in columns: how near their tasks lie, and how long they run."""

from __future__ import annotations

import msgspec


class Locality(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How near one another tied tasks lie, in columns of equal length, sorted by the order of the snapshot.

    There is a row for each placed job, for each of its groups that states a topology or is named in an affinity, and
    for each copy of that group with a placed task.

    Attributes
    ----------
    job, group : list of str
        Name of the job and path of the group.
    copy : list of int
        Number of the copy, from 0; a nested group has as many as the counts above it multiply to.
    level : list of str
        The narrowest of ``"cluster"``, the snapshot's levels and ``"node"`` of which one domain holds all its placed
        tasks.
    domains : list of list of int
        How many domains it uses at each of the snapshot's levels, and last how many nodes.
    """

    job: list[str] = []
    group: list[str] = []
    copy: list[int] = []
    level: list[str] = []
    domains: list[list[int]] = []


class RunTimes(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How long placed jobs run and fetch their data, in columns of equal length, sorted by the order of the snapshot.

    There is a row for each pending job with a placed task that states a duration or data; see
    `placement.snapshot.Duration` and `placement.snapshot.DataLocality`.

    Attributes
    ----------
    job : list of str
        Name of the job.
    level : list of str
        The narrowest of ``"cluster"``, the snapshot's levels and ``"node"`` of which one domain holds all its placed
        tasks.
    seconds, fetch : list of float
        How long it runs, and how long its data take.
    by_model, by_level, by_numa, by_nic, by_sharing : list of float
        The factors in its run time.
    """

    job: list[str] = []
    level: list[str] = []
    seconds: list[float] = []
    fetch: list[float] = []
    by_model: list[float] = []
    by_level: list[float] = []
    by_numa: list[float] = []
    by_nic: list[float] = []
    by_sharing: list[float] = []
