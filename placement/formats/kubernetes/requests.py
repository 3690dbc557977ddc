"""What a pod asks for in all, of every resource.

A pod takes the larger of what its containers and sidecars take together, and of what each plain init container takes
with the sidecars that are started before it; what the pod itself costs comes on top. A container that states a limit
and no request asks for its limit.

The rules: https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers
and https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from placement.errors import InputError
from placement.formats.kubernetes.pod import Container, PodSpec, Resources
from placement.snapshot.report import show, step
from placement.units import Quantity, exact

Amounts = dict[str, Quantity]
"""By resource; none is zero."""

_BYTES = re.compile(r"[0-9.]+[KMGTPE]i?B")


def amounts(spec: PodSpec, file: str, path: str) -> Amounts:
    """Return what a pod asks for.

    Parameters
    ----------
    spec : PodSpec
    file, path : str
        Where it is, for errors.

    Returns
    -------
    dict of str to quantity
        As it is written where one container alone says it, else an exact decimal.

    Raises
    ------
    InputError
        If an amount is none, negative, or far too large.
    """
    parts = [
        (of_container(container.resources, file, f"{path}.containers[{index}].resources"))
        for index, container in enumerate(spec.containers or ())
    ]
    initial = [
        (one.restart_policy == "Always", of_container(one.resources, file, f"{path}.initContainers[{index}].resources"))
        for index, one in enumerate(spec.init_containers or ())
    ]
    overhead = read(spec.overhead, file, f"{path}.overhead")
    if len(parts) == 1 and not initial and not overhead and spec.resources is None:
        return {name: value for name, value in parts[0].items() if exact(value)}
    total = _most(parts, initial)
    for name, value in _of_the_pod(spec.resources, total, file, f"{path}.resources").items():
        total[name] = exact(value)
    for name, value in overhead.items():
        total[name] = total.get(name, Fraction(0)) + exact(value)
    return {name: _written(value, file, f"{path}{step(name)}") for name, value in total.items() if value}


def together(spec: PodSpec) -> list[Amounts]:
    """Return what each container and sidecar asks for, of a pod whose amounts have been looked at."""
    sidecars = [one for one in spec.init_containers or () if one.restart_policy == "Always"]
    return [of_container(one.resources, "", "") for one in (*(spec.containers or ()), *sidecars)]


def guaranteed(spec: PodSpec) -> bool:
    """Return whether each container has limits of CPU and memory that equal its requests."""
    containers: list[Container] = [*(spec.containers or ()), *(spec.init_containers or ())]
    return bool(containers) and all(_fixed(container.resources) for container in containers)


def _fixed(resources: Resources | None) -> bool:
    if resources is None or not resources.limits:
        return False
    limits, requests = resources.limits, resources.requests or {}
    return all(
        name in limits and exact(limits[name]) > 0 and exact(requests.get(name, limits[name])) == exact(limits[name])
        for name in ("cpu", "memory")
    )


def _most(parts: list[Amounts], initial: list[tuple[bool, Amounts]]) -> dict[str, Fraction]:
    """Return the most that is taken at a time, while the init containers run one by one or afterwards."""
    sidecars: dict[str, Fraction] = {}
    most: dict[str, Fraction] = {}
    for stays, asked in initial:
        if stays:
            _add(sidecars, asked)
            now = sidecars
        else:
            now = dict(sidecars)
            _add(now, asked)
        for name, value in now.items():
            most[name] = max(most.get(name, Fraction(0)), value)
    running = dict(sidecars)
    for asked in parts:
        _add(running, asked)
    for name, value in running.items():
        most[name] = max(most.get(name, Fraction(0)), value)
    return most


def _add(total: dict[str, Fraction], asked: Mapping[str, Quantity]) -> None:
    for name, value in asked.items():
        total[name] = total.get(name, Fraction(0)) + exact(value)


def _of_the_pod(resources: Resources | None, total: Mapping[str, Fraction], file: str, path: str) -> Amounts:
    """Return what the pod states as a whole, which stands for what its containers do."""
    if resources is None:
        return {}
    requests = read(resources.requests, file, f"{path}.requests")
    limits = read(resources.limits, file, f"{path}.limits")
    return {**{name: value for name, value in limits.items() if name not in total}, **requests}


def of_container(resources: Resources | None, file: str, path: str) -> Amounts:
    """Return what a container asks for, by requests or else by limits."""
    if resources is None:
        return {}
    requests = read(resources.requests, file, f"{path}.requests")
    limits = read(resources.limits, file, f"{path}.limits")
    if not limits:
        return requests
    # of extended resources both are the same in a cluster; where a file says less of one, the larger counts
    less = [name for name in requests if "/" in name and exact(requests[name]) < exact(limits.get(name, 0))]
    return {**limits, **requests, **{name: limits[name] for name in less}}


def read(given: dict[str, Quantity] | None, file: str, path: str) -> Amounts:
    """Return amounts after a look at each.

    Raises
    ------
    InputError
        If an amount is none, negative, or far too large.
    """
    for name, value in (given or {}).items():
        where = f"{path}{step(name)}"
        if not name:
            raise InputError.one("a resource has an empty name", "name the resource", path=where, source=file)
        try:
            exact(value)
        except (ValueError, OverflowError) as why:
            remedy = 'write a Kubernetes quantity such as "500m" or "80Gi"'
            if isinstance(value, str) and _BYTES.fullmatch(value):
                remedy = f"write {show(value[:-1])}"
            raise InputError.one(str(why), remedy, path=where, source=file) from None
    return given or {}


def _written(value: Fraction, file: str, path: str) -> Quantity:
    """Return an exact amount as a number or a decimal: sums of decimals are decimals."""
    if value.denominator == 1:
        found: Quantity = value.numerator
    else:
        digits = 1
        while (value * 10**digits).denominator != 1:
            digits += 1
        whole, rest = divmod((value * 10**digits).numerator, 10**digits)
        found = f"{whole}.{rest:0{digits}}"
    try:
        exact(found)
    except ValueError as why:
        raise InputError.one(f"in all {why}", "correct the amounts of the containers", path=path, source=file) from None
    return found
