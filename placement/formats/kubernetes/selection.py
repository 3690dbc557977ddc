"""Which nodes a pod may use: selector, required node affinity and tolerations.

What a selector can say is said as one. Any other expression is looked up on all nodes here, and those that match get a
label that only they have: exact for the nodes there are.

The rules: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/ and
https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from placement.errors import InputError
from placement.formats.kubernetes.labels import Labels
from placement.formats.kubernetes.notes import Notes
from placement.formats.kubernetes.pod import PodSpec, PodToleration
from placement.snapshot import Taint, Toleration
from placement.snapshot.report import show

HOSTNAME = "kubernetes.io/hostname"


class Expression(msgspec.Struct, gc=False):
    """A requirement on a label or field; all of a term's must hold."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class _Term(msgspec.Struct, rename="camel", gc=False):
    match_expressions: list[Expression] | None = None
    match_fields: list[Expression] | None = None


class _Terms(msgspec.Struct, rename="camel", gc=False):
    node_selector_terms: list[_Term] | None = None


class _NodeAffinity(msgspec.Struct, rename="camel", gc=False):
    required_during_scheduling_ignored_during_execution: _Terms | None = None
    preferred_during_scheduling_ignored_during_execution: list[Any] | None = None


class _Affinity(msgspec.Struct, rename="camel", gc=False):
    node_affinity: _NodeAffinity | None = None


def selector(spec: PodSpec, labels: Labels, notes: Notes, file: str, path: str) -> dict[str, str]:
    """Return the labels that a node must have for a pod.

    Raises
    ------
    InputError
        If an expression is none.
    """
    chosen = dict(spec.node_selector or {})
    if "" in chosen:
        raise InputError.one("a label has an empty key", "name the label", path=f"{path}.nodeSelector", source=file)
    if not spec.affinity or not spec.affinity.get("nodeAffinity"):
        return chosen
    where = f"{path}.affinity"
    try:
        affinity = msgspec.convert(spec.affinity, _Affinity).node_affinity or _NodeAffinity()
    except msgspec.ValidationError as why:
        raise InputError.one(str(why).replace("`", ""), "correct the affinity", path=where, source=file) from None
    if affinity.preferred_during_scheduling_ignored_during_execution:
        notes.ignored("preferred node affinity", "it is a wish")
    required = affinity.required_during_scheduling_ignored_during_execution
    if required is None:
        return chosen
    terms = required.node_selector_terms or []
    if len(terms) == 1 and not terms[0].match_fields:
        simple, rest = _plain(terms[0].match_expressions or [], chosen)
        chosen |= simple
        if not rest and simple:
            return chosen
        terms = [_Term(match_expressions=rest)] if rest else terms
    allowed: set[int] = set()
    for term in terms:
        allowed |= _matching(term, labels, file, where)
    return labels.narrow(chosen, frozenset(allowed), "affinity")


def admitted(terms: object, labels: Labels, file: str, path: str) -> frozenset[int]:
    """Return the nodes that a node selector admits, as volumes have one.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        found = msgspec.convert(terms, _Terms)
    except msgspec.ValidationError as why:
        raise InputError.one(str(why).replace("`", ""), "correct the affinity", path=path, source=file) from None
    return frozenset[int]().union(*(_matching(term, labels, file, path) for term in found.node_selector_terms or ()))


def _plain(expressions: list[Expression], chosen: dict[str, str]) -> tuple[dict[str, str], list[Expression]]:
    """Return what of a term a selector can say, and the rest of it."""
    simple: dict[str, str] = {}
    rest: list[Expression] = []
    for one in expressions:
        values = one.values or []
        if (
            one.operator == "In"
            and len(values) == 1
            and one.key
            and {**chosen, **simple}.get(one.key, values[0]) == values[0]
        ):
            simple[one.key] = values[0]
        else:
            rest.append(one)
    return simple, rest


def _matching(term: _Term, labels: Labels, file: str, path: str) -> frozenset[int]:
    """Return the nodes that a term admits; one without requirements admits none."""
    if not term.match_expressions and not term.match_fields:
        return frozenset()
    found = labels.every
    for one in term.match_expressions or ():
        having = labels.having(one.key)
        found &= _where(one, having, labels.every, file, path)
    for one in term.match_fields or ():
        if one.key != "metadata.name":
            raise InputError.one(
                f"matchFields has the key {show(one.key)}, expected metadata.name", "correct it", path=path, source=file
            )
        having = {
            name: frozenset((index,)) for name in one.values or () if (index := labels.index.get(name)) is not None
        }
        if one.operator not in ("In", "NotIn"):
            raise _unknown(one, file, path)
        hit = frozenset[int]().union(*having.values())
        found &= hit if one.operator == "In" else labels.every - hit
    return found


def _where(
    one: Expression, having: dict[str, frozenset[int]], every: frozenset[int], file: str, path: str
) -> frozenset[int]:
    values = one.values or []
    labelled = frozenset[int]().union(*having.values())
    match one.operator:
        case "In" | "NotIn":
            hit = frozenset[int]().union(*(having.get(value, frozenset()) for value in values))
            return hit if one.operator == "In" else every - hit
        case "Exists":
            return labelled
        case "DoesNotExist":
            return every - labelled
        case "Gt" | "Lt":
            if len(values) != 1 or (bound := _whole(values[0])) is None:
                raise InputError.one(
                    f"{one.operator} has the values {show(values)}, expected one whole number",
                    "correct the expression",
                    path=path,
                    source=file,
                )
            hits = [
                nodes
                for value, nodes in having.items()
                if (number := _whole(value)) is not None
                and (number > bound if one.operator == "Gt" else number < bound)
            ]
            return frozenset[int]().union(*hits)
    raise _unknown(one, file, path)


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,19}", text, re.ASCII) else None


def _unknown(one: Expression, file: str, path: str) -> InputError:
    what = f"{show(one.key)} has the operator {show(one.operator)}"
    return InputError.one(
        what, "use In, NotIn, Exists, DoesNotExist, Gt or Lt (fields: In or NotIn)", path=path, source=file
    )


def tolerations(
    given: list[PodToleration] | None, file: str, path: str, taints: Iterable[Taint] = ()
) -> tuple[Toleration, ...]:
    """Return a pod's tolerations; what concerns only preferences is left out.

    Parameters
    ----------
    given : list of PodToleration, optional
    file, path : str
        Where the pod is, for errors.
    taints : iterable of Taint
        Those that there are: of a toleration that compares numbers it is looked up which it tolerates.

    Raises
    ------
    InputError
        If one has an operator or effect that there is not, or tolerates no key.
    """
    found: dict[Toleration, None] = {}
    for index, one in enumerate(given or ()):
        where = f"{path}.tolerations[{index}]"
        key, operator, effect = one.key or "", one.operator or "Equal", one.effect or ""
        if effect == "PreferNoSchedule":
            continue
        if operator in ("Gt", "Lt") and key and (bound := _whole(one.value or "")) is not None:
            for taint in taints:
                number = _whole(taint.value)
                if taint.key != key or effect not in ("", taint.effect) or number is None:
                    continue
                if (number > bound) if operator == "Gt" else (number < bound):
                    found[Toleration(key=key, value=taint.value, effect=taint.effect)] = None
            continue
        if operator not in ("Equal", "Exists") or effect not in ("", "NoSchedule", "NoExecute"):
            what = f"found the operator {show(operator)} and the effect {show(effect)}"
            raise InputError.one(
                what,
                "use Exists, Equal, or Gt or Lt with a whole number, and NoSchedule or NoExecute",
                path=where,
                source=file,
            )
        if operator == "Equal" and not key:
            raise InputError.one("it names no key", 'use "Exists" for all keys', path=where, source=file)
        made = Toleration(
            key=key,
            operator="Exists" if operator == "Exists" else "Equal",
            value="" if operator == "Exists" else one.value or "",
            effect=effect,  # type: ignore[arg-type] # looked at above
        )
        found[made] = None
    return tuple(found)
