"""Selectors of devices: the forms of the common expression language that are in use, and what they admit.

A snapshot asks for card models and MIG profiles; a selector that says something else is judged on the devices that are
there, and means the models whose cards all pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from placement.formats.dra.slices import Listed
from placement.units import exact

_STRING = r"(?:\"([^\"\\]*)\"|'([^'\\]*)')"
_ATTRIBUTE = rf"device\.attributes\[{_STRING}\]\.(\w+)"
_DRIVER = re.compile(rf"device\.driver\s*==\s*{_STRING}")
_EQUAL = re.compile(rf"{_ATTRIBUTE}\s*(==|!=)\s*(?:{_STRING}|(\d{{1,9}}|true|false))")
_IN = re.compile(rf"{_ATTRIBUTE}\s+in\s+\[\s*({_STRING}(?:\s*,\s*{_STRING})*)\s*\]")
_PART = re.compile(rf"{_ATTRIBUTE}(\.lowerAscii\(\))?\.(matches|contains|startsWith|endsWith)\(\s*{_STRING}\s*\)")
_PATTERN = re.compile(r"(?P<start>\^)?(?P<before>\.\*)?(?P<text>[\w -]+)(?P<after>\.\*)?(?P<end>\$)?", re.ASCII)
_CAPACITY = rf"device\.capacity\[{_STRING}\]\.(\w+)"
_QUANTITY = rf"quantity\(\s*{_STRING}\s*\)"
_COMPARE = re.compile(rf"{_CAPACITY}\.compareTo\(\s*{_QUANTITY}\s*\)\s*(>=|>|==|<=|<)\s*0")
_PLAIN = re.compile(rf"{_CAPACITY}\s*(>=|>|==|<=|<)\s*{_QUANTITY}")

_COMPARED: dict[str, Callable[[int, int], bool]] = {
    ">=": lambda a, b: a >= b,
    ">": lambda a, b: a > b,
    "==": lambda a, b: a == b,
    "<=": lambda a, b: a <= b,
    "<": lambda a, b: a < b,
}


DRIVER = "driver"
"""Stands for the driver among the attributes that parts of selectors ask about."""


@dataclass(frozen=True, slots=True)
class Test:
    """A part of a selector.

    Attributes
    ----------
    passes : callable
        Whether a device passes.
    attribute : str
        Name of the attribute that it asks about, or `DRIVER`; empty for the capacity.
    values : tuple of str
        What the attribute has to be, where it has to be one of some; else empty.
    """

    passes: Callable[[Listed], bool]
    attribute: str = ""
    values: tuple[str, ...] = ()


def tests(expression: str) -> list[Test] | None:
    """Return the parts of an expression, all of which a device has to pass; None where it has another form."""
    found = []
    for part in _conjuncts(expression):
        test = _test(part)
        if test is None:
            return None
        found.append(test)
    return found


def _conjuncts(expression: str) -> Iterator[str]:
    """Yield the parts that ``&&`` joins, without the parentheses around them."""
    for part in re.split(r"&&", expression):
        text = part.strip()
        while text.startswith("(") and text.endswith(")"):
            text = text[1:-1].strip()
        yield text


def _test(text: str) -> Test | None:
    driver = _DRIVER.fullmatch(text)
    if driver is not None:
        name = driver[1] or driver[2]
        return Test(lambda device: device.driver == name, DRIVER, (name or "",))
    equal = _EQUAL.fullmatch(text)
    if equal is not None:
        attribute, value = equal[3], next((one for one in equal.group(5, 6, 7) if one is not None), "")
        if equal[4] == "==":
            return Test(lambda device: _said(device, attribute) == value, attribute, (value,))
        return Test(lambda device: _said(device, attribute) != value, attribute)
    among = _IN.fullmatch(text)
    if among is not None:
        attribute = among[3]
        values = tuple(one or other for one, other in re.findall(_STRING, among[4]))
        return Test(lambda device: _said(device, attribute) in values, attribute, values)
    part = _PART.fullmatch(text)
    if part is not None:
        return _part(part[3], bool(part[4]), part[5], part[6] if part[6] is not None else part[7])
    for pattern, order in ((_COMPARE, (4, 5, 6)), (_PLAIN, (5, 6, 4))):
        compared = pattern.fullmatch(text)
        if compared is not None and compared[3] == "memory":
            first, second, sign = compared.group(*order)
            return _memory(first or second or "", _COMPARED[sign])
    return None


def _part(attribute: str, lower: bool, how: str, text: str) -> Test | None:
    """Return whether a part of an attribute is some text; None for a pattern that says more than that."""
    begins, ends = how == "startsWith", how == "endsWith"
    if how == "matches":
        pattern = _PATTERN.fullmatch(text)
        if pattern is None:
            return None
        text = pattern["text"]
        begins = bool(pattern["start"]) and not pattern["before"]
        ends = bool(pattern["end"]) and not pattern["after"]

    def passes(device: Listed) -> bool:
        value = _said(device, attribute)
        value = value.lower() if lower else value
        if begins and ends:
            return value == text
        return value.startswith(text) if begins else value.endswith(text) if ends else text in value

    return Test(passes, attribute)


def _memory(text: str, passes: Callable[[int, int], bool]) -> Test | None:
    try:
        amount = int(exact(text))
    except ValueError:
        return None
    return Test(lambda device: device.memory is not None and passes(device.memory, amount))


def _said(device: Listed, attribute: str) -> str:
    value = device.attributes.get(attribute)
    if value is not None and value.flag is not None:
        return "true" if value.flag else "false"
    return device.text(attribute) or ("gpu" if attribute == "type" and device.kind == "gpu" else "")
