"""Gangs of the scheduler plugins' coscheduling and of Koordinator.

A pod names its PodGroup by a label. With Koordinator, and with the plugins' first versions, it may say the gang and
its minimum itself, and there is no object.

The forms: https://scheduler-plugins.sigs.k8s.io/docs/plugins/coscheduling and
https://koordinator.sh/docs/user-manuals/gang-scheduling
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from placement.errors import InputError
from placement.formats.kubernetes.objects import Item, Meta, Objects
from placement.formats.kubernetes.parts import Addition, Gang, GangGroup
from placement.formats.kubernetes.pod import Pod
from placement.formats.ledger import Ledger
from placement.snapshot.report import show

API_GROUPS = ("scheduling.x-k8s.io", "scheduling.sigs.k8s.io")
"""Of PodGroup; the first versions and Koordinator have the second."""

LABELS = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")
"""Labels of pods that name their PodGroup."""

LIGHT = (
    ("gang.scheduling.koordinator.sh/name", "gang.scheduling.koordinator.sh/min-available"),
    ("pod-group.scheduling.sigs.k8s.io/name", "pod-group.scheduling.sigs.k8s.io/min-available"),
)
"""Annotations or labels of pods without a PodGroup: name of the gang, and its minimum."""

TOGETHER = "gang.scheduling.koordinator.sh/groups"
"""Annotation: gangs that start together."""


class _Spec(msgspec.Struct, rename="camel", gc=False):
    min_member: int = 1


class _PodGroup(msgspec.Struct, gc=False):
    metadata: Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Seen(msgspec.Struct, gc=False):
    """All of a pod that is looked at here, for there may be 100,000."""

    metadata: Meta


def read(objects: Objects, ledger: Ledger) -> Addition:
    """Return the gangs, and which pod is in which.

    Raises
    ------
    InputError
        If an object is not what its kind has to be, or a minimum is none.
    """
    gangs: dict[str, Gang] = {}
    for api_group in API_GROUPS:
        for item in objects.of(api_group, "PodGroup", _PodGroup):
            meta, least = item.value.metadata, item.value.spec.min_member
            if least < 1:
                what = f"minMember is {show(least)}, expected 1 or more"
                raise InputError.one(what, "correct it", path=f"{item.path}.spec", source=item.file)
            _note(meta, item.where, item.file, ledger)
            gangs.setdefault(meta.key, _gang(meta.key, least, item.where))
            ledger.read("pod groups of coscheduling", item.where)
    for pod in objects.of("", "Pod", _Seen):
        key = _key(pod.value.metadata)
        said = None if key is None or key in gangs else _least(pod)
        if key is not None and said is not None:
            _note(pod.value.metadata, pod.where, pod.file, ledger)
            gangs[key] = _gang(key, said, pod.where)
            ledger.read("gangs that pods say themselves", pod.where)
    return Addition(gangs=tuple(gangs.values()), member=lambda pod: _member(pod, gangs))


def _gang(key: str, least: int, where: str) -> Gang:
    return Gang(key=key, groups=(GangGroup(name="pods", min_count=least),), where=where)


def _note(meta: Meta, where: str, file: str, ledger: Ledger) -> None:
    """Note gangs that wait for one another, of which each is placed by itself."""
    if (meta.annotations or {}).get(TOGETHER, "").strip() not in ("", "[]"):
        ledger.unsupported("gangs that start together", "each starts by itself", where, file)


def _said(meta: Meta, name: str) -> str:
    """Return an annotation or label of a pod; empty for none."""
    return (meta.annotations or {}).get(name) or (meta.labels or {}).get(name) or ""


def _key(meta: Meta) -> str | None:
    """Return the key of the gang that a pod names."""
    labels = meta.labels or {}
    named = [labels[label] for label in LABELS if labels.get(label)]
    named += [said for name, _ in LIGHT if (said := _said(meta, name))]
    return f"{meta.namespace or 'default'}/{named[0]}" if named else None


def _least(item: Item[_Seen]) -> int | None:
    """Return the minimum that a pod says of its gang; None where it says none."""
    for _, name in LIGHT:
        text = _said(item.value.metadata, name)
        if text:
            if not re.fullmatch(r"[0-9]{1,6}", text, re.ASCII) or int(text) < 1:
                what = f"{name} is {show(text)}, expected a whole number from 1"
                raise InputError.one(what, "correct it", path=f"{item.path}.metadata", source=item.file)
            return int(text)
    return None


def _member(pod: Pod, gangs: Mapping[str, Gang]) -> tuple[str, str] | None:
    """Return gang and group of a pod; a group that is in no file and has no minimum is no gang."""
    key = _key(pod.metadata)
    return (key, "pods") if key is not None and key in gangs else None
