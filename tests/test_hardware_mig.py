"""MIG geometries: the catalogue agrees with itself, its names are found, and layouts are those that are known to exist.

The counts of layouts and the verdicts were worked out from the tables of profiles by an independent program before this
project had any code for them; several verdicts were seen on hardware or stand in the user guide.
"""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from mig_simulator import can_be

from placement.hardware import mig
from placement.hardware.layouts import (
    arrangements,
    candidates,
    clash,
    feasible,
    fits,
    in_order,
    maximal,
    multiset,
    openness,
    placements,
)
from placement.hardware.mig import Geometry, Profile, fraction, geometries, geometry, models, nearest, sources

SEVEN = [one.model for one in geometries() if one.slots == 8]
"""Models with seven compute slices: all have the same slots, under other names."""


def known(model: str) -> Geometry:
    found = geometry(model)
    assert found is not None
    return found


def profile(model: str, name: str) -> Profile:
    found = known(model).profile(name)
    assert found is not None, f"{model} has no {name}"
    return found


def base(model: str) -> list[Profile]:
    """The profiles without a choice of media engines or graphics."""
    return [one for one in known(model).profiles if "+" not in one.name and "-" not in one.name]


def single(model: str) -> list[Profile]:
    """Those of them without the ``1g`` of double memory."""
    return [one for one in base(model) if not (one.compute == 1 and one.size == 2)]


# --- the catalogue -------------------------------------------------------------------------------------------


def test_the_catalogue_is_complete() -> None:
    assert len(models()) == 17
    assert len(set(models())) == 17
    assert sum(len(one.profiles) for one in geometries()) == 120


@pytest.mark.parametrize("one", geometries(), ids=lambda one: one.model)
def test_a_model_agrees_with_itself(one: Geometry) -> None:
    assert {*one.sources, *(key for p in one.profiles for key in p.sources)} <= sources().keys()
    assert one.sources
    assert len({p.name for p in one.profiles}) == len(one.profiles)
    assert any(p.size == one.slots and p.starts == (0,) for p in one.profiles)
    for p in one.profiles:
        assert p.sources
        assert p.starts == tuple(sorted({*p.starts}))
        assert p.starts[0] >= 0
        assert p.starts[-1] + p.size <= one.slots
        assert 1 <= p.compute <= one.compute
        assert len(p.engines) == len(one.engines)
        assert all(0 <= need <= there for need, there in zip(p.engines, one.engines, strict=True))
        assert one.memory is None or p.memory is None or p.memory < one.memory
        assert p.bits(0) == 2**p.size - 1


def test_sources_can_be_looked_up() -> None:
    assert all(set(one) == {"title", "url", "kind"} and one["title"] and one["kind"] for one in sources().values())


@pytest.mark.parametrize("one", geometries(), ids=lambda one: one.model)
def test_other_limits_follow_from_slots_and_engines(one: Geometry) -> None:
    """Compute slices, SMs, memory and the most instances of a profile that are published are never what stops a set."""
    facts: Any = next(model for model in mig._facts()["models"] if model["name"] == one.model)
    most = {p["name"]: p["most"] for p in facts["profiles"]}
    sm = next((p.sm for p in one.profiles if p.size == one.slots), None)
    reached: Counter[str] = Counter()
    for layout in feasible(one):
        placed = [p for p, _ in layout]
        assert sum(p.compute for p in placed) <= one.compute
        counts = Counter(p.name for p in placed)
        assert all(number <= most[name] for name, number in counts.items())
        reached |= counts
        if sm is not None:
            assert sum(p.sm or 0 for p in placed) <= sm
        if one.memory is not None:
            assert sum(p.memory or 0 for p in placed) <= one.memory
    # and each of these limits is reached: the slots allow no fewer either
    assert reached == Counter(most)


# --- names ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("A100-40", "A100-40GB"),
        ("NVIDIA A100-SXM4-40GB", "A100-40GB"),
        ("NVIDIA-A100-SXM4-40GB", "A100-40GB"),
        ("nvidia a100 80gb pcie", "A100-80GB"),
        ("NVIDIA-A100-SXM4-80GB-SHARED", "A100-80GB"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "A100-40GB"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb.me", "A100-40GB"),
        ("NVIDIA-H100-80GB-HBM3", "H100-SXM5-80GB"),
        ("H100 NVL", "H100-94GB"),
        ("a30", "A30-24GB"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000-BLACKWELL-96GB"),
    ],
)
def test_models_by_other_names(name: str, model: str) -> None:
    assert known(name).model == model


@pytest.mark.parametrize("one", geometries(), ids=lambda one: one.model)
def test_every_alias_is_found(one: Geometry) -> None:
    for name in (one.model, *one.aliases):
        assert geometry(name) is one
        assert geometry(f"{name}-SHARED") is one


@pytest.mark.parametrize("name", ["A100", "T4", "V100-16", "", "A100-40GB-MIG", "MIG-1g.5gb"])
def test_unknown_models(name: str) -> None:
    assert geometry(name) is None


def test_nearest_names() -> None:
    assert nearest("A100-40G", models())[0] == "A100-40GB"
    assert nearest("H20O-141GB", models())[0] == "H200-141GB"
    assert nearest("xyz", models()) == ()


@pytest.mark.parametrize(
    ("model", "asked", "name"),
    [
        ("A100-40GB", "nvidia.com/mig-1g.5gb.me", "1g.5gb+me"),
        ("A100-40GB", "MIG-3G.20GB", "3g.20gb"),
        ("A100-80GB", "7g.79gb", "7g.80gb"),
        ("GB200-186GB", "7g.189gb", "7g.186gb"),
        ("GB200-186GB", "1g.24gb", "1g.23gb"),
        ("RTX-PRO-6000", "mig-2g.48gb.me.all", "2g.48gb+me.all"),
        ("RTX-PRO-6000", "1g.24gb-me", "1g.24gb-me"),
        ("RTX-PRO-6000", "mig-1g.24gb.gfx", "1g.24gb+gfx"),
    ],
)
def test_profiles_by_other_names(model: str, asked: str, name: str) -> None:
    assert profile(model, asked).name == name


@pytest.mark.parametrize("asked", ["2g.20gb", "5g.20gb", "1g.7gb", "1g.5gb+gfx", "1g", "", "3g.40gb"])
def test_profiles_that_a_card_lacks(asked: str) -> None:
    assert known("A100-40GB").profile(asked) is None


def test_one_name_means_different_profiles() -> None:
    """``1g.10gb`` has two of eight slots on the small A100 and one on the large."""
    assert (profile("A100-40GB", "1g.10gb").size, profile("A100-80GB", "1g.10gb").size) == (2, 1)


def test_fractions() -> None:
    assert fraction("1g.5gb") == Fraction(1, 7)
    assert fraction("mig-3g.20gb") == Fraction(3, 7)
    assert fraction("1g.6gb") == Fraction(1, 4)
    assert fraction("4g.24gb") == 1
    # a seventh of an H100-94GB, a quarter of an RTX PRO 6000, half of an RTX PRO 5000
    assert fraction("1g.24gb") == Fraction(1, 7)
    assert fraction("9g.1gb") is None


# --- how many layouts there are ------------------------------------------------------------------------------

COUNTS = [
    # models; profiles; instances that could be; feasible layouts; maximal ones; multisets of these; multisets that are
    # in no larger feasible one; feasible multisets
    (SEVEN, single, 14, 297, 19, 14, 12, 37),
    (SEVEN, base, 18, 722, 78, 38, 28, 77),
    (SEVEN, None, 25, 2318, 239, 64, 44, 127),
    (["A30-24GB"], base, 7, 25, 5, 4, 4, 9),
    (["A30-24GB"], None, 13, 75, 17, 8, 8, 19),
    (["RTX-PRO-6000-BLACKWELL-96GB"], base, 7, 25, 5, 4, 4, 9),
    (["RTX-PRO-6000-BLACKWELL-96GB"], None, 30, 716, 302, 64, 64, 114),
    (["RTX-PRO-5000-BLACKWELL-48GB"], single, 3, 4, 2, 2, 2, 3),
    (["RTX-PRO-5000-BLACKWELL-48GB"], None, 12, 29, 19, 12, 12, 17),
    (["RTX-PRO-4500-BLACKWELL-32GB"], single, 3, 4, 2, 2, 2, 3),
    (["RTX-PRO-4500-BLACKWELL-32GB"], None, 10, 21, 13, 9, 9, 13),
]


def test_every_model_is_counted() -> None:
    assert {model for row in COUNTS for model in row[0]} == {*models()}
    assert len(SEVEN) == 13


@pytest.mark.parametrize(
    ("model", "profiles", "counts"),
    [
        pytest.param(model, profiles, counts, id=f"{model}-{profiles.__name__ if profiles else 'all'}")
        for among, profiles, *counts in COUNTS
        for model in among
    ],
)
def test_counts_of_layouts(model: str, profiles: Any, counts: list[int]) -> None:
    one = known(model)
    among = None if profiles is None else profiles(model)
    every, full = [*feasible(one, among)], [*maximal(one, among)]
    assert len({*every}) == len(every)
    multisets = {multiset(layout) for layout in every}
    largest = [a for a in multisets if not any(a != b and not Counter(a) - Counter(b) for b in multisets)]
    found = [len(candidates(one, among)), len(every), len(full), len({multiset(layout) for layout in full})]
    assert [*found, len(largest), len(multisets)] == counts
    for layout in random.Random(model).sample(every, min(20, len(every))):
        assert can_be(one, {start: p.name for p, start in layout})
        assert clash(one, layout) is None


def test_the_fourteen_multisets_of_an_a100() -> None:
    """Multisets of the 19 maximal layouts by their compute slices, and how many of these each has."""
    found: Counter[str] = Counter()
    for layout in maximal(known("A100-40GB"), single("A100-40GB")):
        found["".join(sorted((name[0] for name in multiset(layout)), reverse=True))] += 1
    once = ["7", "43", "421", "4111", "33", "322", "31111", "2221", "1111111"]
    # 3g at slot 0 leaves slot 7 over: these are full, though there are 3-2-1-1 and 3-1-1-1-1
    stranded = ["321", "3111"]
    assert found == {**dict.fromkeys((*once, *stranded), 1), "3211": 2, "22111": 3, "211111": 3}


# --- verdicts ------------------------------------------------------------------------------------------------

VERDICTS = """
A100-40GB | | 7g.40gb | yes
A100-40GB | | 4g.20gb 2g.10gb 1g.5gb | yes
A100-40GB | | 3g.20gb 2g.10gb 1g.5gb 1g.5gb | yes
A100-40GB | | 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb | yes
A100-40GB | | 3g.20gb 2g.10gb 2g.10gb | yes
A100-40GB | | 4g.20gb 1g.5gb 1g.5gb 1g.5gb | yes
A100-40GB | | 4g.20gb 4g.20gb | no
A100-40GB | | 2g.10gb 2g.10gb 2g.10gb 2g.10gb | no
A100-40GB | | 7g.40gb 1g.5gb | no
A100-40GB | | 4g.20gb 2g.10gb 2g.10gb | no
A100-40GB | | 1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.5gb | no
A100-40GB | | 1g.10gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb | yes
A100-40GB | | 3g.20gb 3g.20gb 1g.10gb | no
A100-40GB | | 1g.5gb+me 1g.5gb+me | no
A100-40GB | 1g.5gb@1 1g.5gb@3 1g.5gb@5 | 2g.10gb | no
A100-40GB | 3g.20gb@0 | 4g.20gb | no
A100-40GB | 3g.20gb@0 | 1g.5gb 1g.5gb 1g.5gb 1g.5gb | no
A100-80GB | | 3g.40gb 2g.20gb 1g.10gb 1g.10gb | yes
H100-SXM5-80GB | | 2g.20gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb | yes
H100-SXM5-80GB | | 4g.40gb 2g.20gb 1g.10gb | yes
H100-SXM5-80GB | 1g.10gb@0 1g.10gb@1 1g.10gb@5 | 3g.40gb | no
H100-SXM5-80GB | 1g.10gb@0 1g.10gb@1 1g.10gb@5 | 2g.20gb 2g.20gb | no
GH200-96GB | | 3g.48gb 2g.24gb 1g.24gb | yes
H200-141GB | | 1g.18gb 1g.18gb 1g.18gb 1g.18gb 1g.18gb 2g.35gb | yes
B200-180GB | | 3g.90gb 2g.45gb 1g.23gb 1g.23gb | yes
B200-180GB | | 4g.90gb 4g.90gb | no
A30-24GB | | 2g.12gb 1g.6gb 1g.6gb | yes
A30-24GB | 1g.6gb@1 1g.6gb@3 | 2g.12gb | no
RTX-PRO-6000 | | 2g.48gb 1g.24gb 1g.24gb | yes
RTX-PRO-6000 | | 1g.24gb 1g.24gb 1g.24gb 1g.24gb 1g.24gb | no
RTX-PRO-6000 | | 1g.24gb+me.all 1g.24gb 1g.24gb 1g.24gb | no
RTX-PRO-6000 | | 2g.48gb+me.all 1g.24gb-me 1g.24gb-me | yes
RTX-PRO-6000 | | 1g.24gb+gfx 1g.24gb+gfx 1g.24gb 1g.24gb | yes
RTX-PRO-5000 | | 2g.48gb 1g.24gb | no
"""
"""Card | instances there already | instances wanted | whether they all have a place."""


@pytest.mark.parametrize("row", VERDICTS.strip().splitlines())
def test_verdicts(row: str) -> None:
    model, there, wanted, verdict = (part.strip() for part in row.split("|"))
    fixed = [(profile(model, name), int(start)) for name, _, start in (one.partition("@") for one in there.split())]
    asked = [profile(model, name) for name in wanted.split()]
    starts = placements(known(model), asked, fixed)
    assert (starts is not None) == (verdict == "yes")
    if starts is not None:
        assert clash(known(model), [*fixed, *zip(asked, starts, strict=True)]) is None


# --- the functions -------------------------------------------------------------------------------------------


def by_trying(one: Geometry, wanted: list[Profile], fixed: list[tuple[Profile, int]]) -> bool:
    """Whether some choice of starts can be, all of them tried."""
    there = {start: p.name for p, start in fixed}
    for starts in product(*(p.starts for p in wanted)):
        new = dict(zip(starts, (p.name for p in wanted), strict=True))
        if len({*starts}) == len(wanted) and not new.keys() & there and can_be(one, {**there, **new}):
            return True
    return False


@pytest.mark.parametrize("seed", range(60))
def test_placements_find_a_place_where_there_is_one(seed: int) -> None:
    draw = random.Random(seed)
    one = draw.choice(geometries())
    fixed: list[tuple[Profile, int]] = []
    for candidate in draw.sample(candidates(one), 3):
        if can_be(one, {start: p.name for p, start in (*fixed, candidate)}) and candidate[1] not in {
            start for _, start in fixed
        }:
            fixed.append(candidate)
    wanted = draw.choices(one.profiles, weights=[1 / p.size for p in one.profiles], k=draw.randint(1, 4))
    starts = placements(one, wanted, fixed)
    assert (starts is not None) == by_trying(one, wanted, fixed)
    if starts is not None:
        assert clash(one, [*fixed, *zip(wanted, starts, strict=True)]) is None


def test_placements_leave_most_open() -> None:
    """``3g`` goes to slot 4: at slot 0 it is in the way of ``4g`` and strands slot 7."""
    one = known("A100-40GB")
    assert placements(one, [profile("A100-40GB", "3g.20gb")]) == (4,)
    # at 4 there stay open: 1g and 1g+me at 0-3, 1g.10gb at 0, 2; 2g at 0, 2; 3g and 4g at 0: 4 + 4 + 2 + 4 + 3 + 4
    assert openness(one, [(profile("A100-40GB", "3g.20gb"), 4)]) == 21
    # at 0: 1g and 1g+me at 4-6, 1g.10gb at 4, 6; 2g at 4; 3g at 4: 3 + 3 + 2 + 2 + 3
    assert openness(one, [(profile("A100-40GB", "3g.20gb"), 0)]) == 13


def test_placements_of_like_instances() -> None:
    """Side by side, for that leaves a half of the card; as low as may be, and in ascending order."""
    one, small, large = known("A30"), profile("A30", "1g.6gb"), profile("A30", "2g.12gb")
    assert placements(one, [small, small]) == (0, 1)
    assert placements(one, [small, large, small]) == (0, 2, 1)
    assert placements(one, []) == ()
    assert [*arrangements(one, [small, large, small], [(small, 0)])] == []
    assert [*arrangements(one, [small, small], [(small, 0)])] == [(1, 2), (1, 3), (2, 3)]


def test_fits() -> None:
    one, full, small = known("A30"), profile("A30", "4g.24gb"), profile("A30", "1g.6gb")
    assert fits(one, [], (full, 0))
    assert not fits(one, [(small, 3)], (full, 0))
    assert not fits(one, [], (full, 1))
    media = profile("A30", "1g.6gb+me")
    assert fits(one, [(media, 0)], (small, 1))
    assert not fits(one, [(media, 0)], (media, 1))


@pytest.mark.parametrize(
    ("model", "instances", "parts"),
    [
        ("A30", [("2g.12gb", 1)], ["2g.12gb cannot start at slot 1", "A30-24GB", "0 or 2"]),
        ("A30", [("1g.6gb", 3), ("2g.12gb", 2)], ["2g.12gb at slots 2 to 3", "1g.6gb at slot 3", "slot 3"]),
        ("A30", [("1g.6gb", 1), ("1g.6gb", 1)], ["1g.6gb at slot 1 and 1g.6gb at slot 1 both take slot 1"]),
        ("A30", [("1g.6gb+me", 0), ("1g.6gb+me", 3)], ["2 x 1g.6gb+me take 2 JPEG units together", "the card has 1"]),
        ("RTX-PRO-6000", [("1g.24gb+me.all", 0), ("1g.24gb", 3)], ["take 5 decoders together, and the card has 4"]),
    ],
)
def test_clashes(model: str, instances: list[tuple[str, int]], parts: list[str]) -> None:
    why = clash(known(model), [(profile(model, name), start) for name, start in instances])
    assert why is not None
    for part in parts:
        assert part in why


@pytest.mark.parametrize("seed", range(40))
def test_a_clash_is_found_where_there_is_one(seed: int) -> None:
    draw = random.Random(seed)
    one = draw.choice(geometries())
    instances = draw.choices(candidates(one), k=draw.randint(0, 3))
    starts = {start: p.name for p, start in instances}
    assert (clash(one, instances) is None) == (len(starts) == len(instances) and can_be(one, starts))
    assert in_order(instances) == in_order(reversed(instances))
