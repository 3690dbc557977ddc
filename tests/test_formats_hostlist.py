"""Lists of hosts: expanded as Slurm expands them, and back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.errors import InputError
from placement.formats.slurm.hostlist import compress, expand


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[1-3,007-010]", ["n1", "n2", "n3", "n007", "n008", "n009", "n010"]),
        # the width is that of the first number, and no more than the number needs
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("n[8-11]", ["n8", "n9", "n10", "n11"]),
        ("n[99-101]", ["n99", "n100", "n101"]),
        ("r[1-2]n[0-1]", ["r1n0", "r1n1", "r2n0", "r2n1"]),
        ("n[1-2].cluster.example,login", ["n1.cluster.example", "n2.cluster.example", "login"]),
        ("switch.1.[9-10]", ["switch.1.9", "switch.1.10"]),
        ("a[1,3],b", ["a1", "a3", "b"]),
        (" a1, a2 ", ["a1", "a2"]),
        ("[1-2]", ["1", "2"]),
        # what Slurm writes for nobody
        ("", []),
        ("(null)", []),
        ("None assigned", []),
    ],
)
def test_expand(text: str, hosts: list[str]) -> None:
    assert list(expand(text)) == hosts


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("n[1-3", "a bracket that is not closed at character 2"),
        ("n1-3]", "a bracket that is not open at character 5"),
        ("n[1-[2]]", "a bracket in a bracket at character 5"),
        ("n[3-1]", '"3-1" runs backwards at character 3'),
        ("n[]", '"" is no number and no range at character 3'),
        ("n[1,x]", '"x" is no number and no range at character 5'),
        ("n[000x333]", '"000x333" is no number and no range at character 3'),
        ("n1,,n2", "no name at character 4"),
        ("n1,", "no name at character 4"),
        ("n1,None", "a word for no host at character 4"),
        ("n 1", "a blank in a name at character 1"),
        ("n[1-1000001]", "more than 1,000,000 hosts at character 3"),
        ("n[0-999]x[0-999]y[0-1]", "more than 1,000,000 hosts at character 1"),
        ("n[1-99999999999999999999]", "a number with too many digits at character 3"),
    ],
)
def test_errors_say_where(text: str, what: str) -> None:
    with pytest.raises(InputError) as found:
        expand(text, "nodes.json", "jobs[0].nodes")
    assert str(found.value).startswith(f"nodes.json: jobs[0].nodes: {what}")


def test_compress() -> None:
    assert compress(["n1", "n2", "n3", "n007", "n008", "login", "n9"]) == "n[1-3,007-008],login,n9"
    assert compress(["n9", "n10", "n09", "n10"]) == "n[9-10,09-10]"
    assert compress(["n1"]) == "n1"
    assert compress([]) == ""
    for wrong in ("", "a,b", "a[1]", "a b", "(null)"):
        with pytest.raises(ValueError, match="is no name of a host"):
            compress([wrong])


NAMES = st.one_of(
    st.from_regex(r"[a-z]{1,2}[0-9]{1,3}", fullmatch=True),
    st.from_regex(r"[a-z0-9._-]{1,12}", fullmatch=True),
    st.builds(lambda number, width: f"n{number:0{width}}", st.integers(0, 120), st.integers(1, 4)),
)


@settings(max_examples=60)
@given(st.lists(NAMES.filter(lambda name: name != "none"), max_size=20))
def test_there_and_back(hosts: list[str]) -> None:
    assert list(expand(compress(hosts))) == hosts


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(0, 60), st.integers(1, 8))
def test_runs_become_one_range(low: int, more: int, width: int) -> None:
    hosts = [f"n{number:0{width}}" for number in range(low, low + more + 1)]
    text = compress(hosts)
    assert len(text) <= len(f"n[{hosts[0]}-{hosts[-1]}]")
    assert list(expand(text)) == hosts


@settings(max_examples=60)
@given(st.text("n019[],-x ", max_size=9))
def test_nothing_but_hosts_or_an_error(text: str) -> None:
    try:
        hosts = expand(text)
    except InputError:
        return
    assert all(hosts)
