from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement import units


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (0, Fraction(0)),
        (1.5, Fraction(3, 2)),
        (0.1, Fraction(1, 10)),
        ("250m", Fraction(1, 4)),
        ("1288490188800m", Fraction(12884901888, 10)),  # 1.2 * 2**30 bytes, as Kubernetes writes 1.2Gi
        ("0.5Gi", Fraction(2**29)),
        (".5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("1e3", Fraction(1000)),
        ("1E", Fraction(10**18)),
        ("1E2", Fraction(100)),
        ("+3k", Fraction(3000)),
        ("7n", Fraction(7, 10**9)),
        ("-0", Fraction(0)),
    ],
)
def test_exact(text: units.Quantity, value: Fraction) -> None:
    assert units.exact(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "Gi", "1 Gi", "6GiB", "0x10", "1_000", "٣", "NaN", "inf", "1e", "1e9999", "--1", "1K", "1ki", "-1"),
        *(-1, -0.5, float("nan"), float("inf"), True, 2**63, "1e19", "16Ei", 1e300),
    ],
)
def test_refused(text: units.Quantity) -> None:
    with pytest.raises(ValueError, match=r"quantity|negative|larger|finite"):
        units.exact(text)


@given(st.fractions(min_value=0, max_value=2**40))
def test_rounding_brackets_the_value(value: Fraction) -> None:
    text = f"{value.numerator * 10**9 // value.denominator}n"
    held = units.exact(text)
    assert held <= Fraction(units.milli_up(text), 1000) < held + Fraction(1, 1000)
    assert units.mebibytes_down(text) * 2**20 <= held <= units.mebibytes_up(text) * 2**20


def test_version_order() -> None:
    ordered = ["11", "11.8", "12", "12.4", "450.80.02", "550.54.14", "550.54.15", "550.90"]
    assert sorted(list(ordered)[1:] + ordered[:1], key=units.version) == ordered


@pytest.mark.parametrize("text", ["", "12.", "v12", "12.x", "١٢", "1" * 61])
def test_version_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version"):
        units.version(text)
