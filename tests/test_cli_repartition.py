"""``placement repartition`` on the command line: the day and the night of one node, with arithmetic by hand."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from cli_cases import placement, refused

from placement import instances
from placement.repartition import Repartition
from placement.snapshot.read import dumps, load

DAY, NIGHT = "mig-day", "mig-night"


def test_the_table() -> None:
    result = placement("repartition", DAY, NIGHT)
    assert result.exit_code == 1
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["node", "card", "step", "profile", "slot", "time,", "s"]
    assert lines[2].split() == ["a", "0", "destroy", "1g.5gb", "0", "0.15"]
    assert lines[9].split() == ["a", "0", "create", "7g.40gb", "0", "0.12"]
    # two cards of seven instances each; of the third one is in use
    assert len(lines) == 2 + 2 * 8 + 1 + 1 + 3
    assert lines[-4:] == [
        "blocked: card 1 of a, where job chat uses 1g.5gb at slot 3",
        "2 cards to change, 1 blocked, 1 as wanted already",
        "14 instances destroyed, 2 created",
        # 14 · 0.15 + 2 · 0.12, half of it for each card
        "2.34 s in all, 1.17 s with cards side by side",
    ]
    assert max(map(len, lines)) <= 80


def test_permuted_nothing_is_in_the_way() -> None:
    """One card is to stay as it is by night: the one in use."""
    result = placement("repartition", DAY, NIGHT, "--permute", "--format", "json")
    assert result.exit_code == 0
    found = msgspec.json.decode(result.stdout_bytes, type=Repartition)
    assert result.stdout.count("\n") == 1
    assert found.blocked == ()
    assert (found.destroyed, found.created, found.unchanged) == (21, 3, 1)
    assert [(card.card, card.target) for card in found.cards] == [(0, 0), (2, 2), (3, 1)]


def test_within_a_budget() -> None:
    """7 instances are one card: 1 of 2 that could change, and the blocked one is said all the same."""
    result = placement("repartition", DAY, NIGHT, "--budget", "13")
    assert result.exit_code == 1
    assert "1 card to change, 1 blocked, 1 over the budget, 1 as wanted already" in result.stdout
    assert "7 instances destroyed, 1 created" in result.stdout
    nothing = placement("repartition", DAY, NIGHT, "--permute", "--budget", "0")
    assert nothing.exit_code == 0
    assert nothing.stdout.splitlines()[0] == "0 cards to change, 3 over the budget, 1 as wanted already"


def test_back_to_day() -> None:
    """The jobs of the target do not matter, so nothing runs that could be in the way."""
    result = placement("repartition", NIGHT, DAY)
    assert result.exit_code == 0
    assert "3 instances destroyed, 21 created" in result.stdout


def test_nothing_to_do() -> None:
    result = placement("repartition", DAY, DAY)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "0 cards to change, 4 as wanted already"


def test_long_lists_are_cut(in_tmp: Path) -> None:
    """50 nodes of three cards that change: 8 · 150 steps, of which JSON has all."""
    for name in (DAY, NIGHT):
        snapshot = load(instances.path(name))
        nodes = tuple(msgspec.structs.replace(node, count=50) for node in snapshot.nodes)
        Path(f"{name}.json").write_bytes(dumps(msgspec.structs.replace(snapshot, nodes=nodes, jobs=())))
    result = placement("repartition", f"{DAY}.json", f"{NIGHT}.json")
    assert result.exit_code == 0
    assert "and 1,000 more steps" in result.stdout
    whole = placement("repartition", f"{DAY}.json", f"{NIGHT}.json", "--format", "json")
    assert len(msgspec.json.decode(whole.stdout_bytes, type=Repartition).steps) == 1200


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ([DAY, "openb"], ["nodes: of the two snapshots, only the one before has"]),
        ([DAY, "mig-nite"], ["mig-nite", 'did you mean "mig-night"?']),
        ([DAY, NIGHT, "--budget", "-1"], ["--budget: is -1", "0 or more"]),
        ([DAY, NIGHT, "--budget", "some"], ["--budget", "integer"]),
        (["-", "-"], ["standard input can be read only once"]),
        ([DAY], ["after"]),
    ],
    ids=lambda value: " ".join(value)[:40],
)
def test_bad_usage(words: list[str], parts: list[str]) -> None:
    refused(placement("repartition", *words), *parts, lines=2 if "openb" in words else 1)
