"""Where gangs lie: the domains of a cluster as a tree of text, and a table of the groups that are tied to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from placement.plan import Plan
from placement.report.occupancy import Card, Row, names, occupancy
from placement.report.picture import Palette, apportion
from placement.report.terminal import counted, number, plain, table
from placement.snapshot import Job, Snapshot, TaskGroup, Topology

LINES = 40
"""Domains that are drawn before the narrow ones are folded."""
ROWS = 20
"""Tied groups that are listed before the rest is counted."""
BAR = 24
"""Characters for the cards of a domain; where they are no more than that, each has its own."""
NODES = 100_000
"""Most nodes of a cluster that is drawn; what 40 lines tell of more is not worth the seconds that it takes."""

RUNNING, OTHER, FREE, UNHEALTHY = "-", "+", ".", "x"
MARKS = {RUNNING: "running", OTHER: "other new work", FREE: "free", UNHEALTHY: "unhealthy"}
"""What stands for cards that no job with a letter has."""

Use = dict[str, Fraction]
"""Cards by who has them: the letter of a job, or one of `MARKS`."""


@dataclass(slots=True)
class Domain:
    """A domain of the cluster: what lies in it, and who has its cards.

    Attributes
    ----------
    name : str
    level : int
        0 for the cluster, then the snapshot's levels from wide to narrow, last the node.
    parts : list of Domain
        The widest domains within it.
    use : dict of str to Fraction
        Cards by mark; see `Use`.
    """

    name: str
    level: int
    parts: list[Domain] = field(default_factory=list)
    use: Use = field(default_factory=dict)

    @property
    def figures(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """Cards in all, those of running work, those that the plan gives away, and those that stay free."""
        cards = sum(self.use.values(), Fraction(0))
        running, free, unhealthy = (self.use.get(mark, Fraction(0)) for mark in (RUNNING, FREE, UNHEALTHY))
        return cards, running, cards - running - free - unhealthy, free


def tells(snapshot: Snapshot) -> bool:
    """Return whether there is something to draw: levels, a pending job that is tied, and not too many nodes."""
    if not snapshot.topology or sum(node.count for node in snapshot.nodes) > NODES:
        return False
    return any(_is_tied(job) for job in snapshot.jobs if job.running is None)


def tree_report(snapshot: Snapshot, plan: Plan, *, width: int = 80) -> RenderableType:
    """Return the tree and the table of tied groups.

    Parameters
    ----------
    snapshot : Snapshot
    plan : Plan
    width : int
        Characters that the tree may take.
    """
    rows = occupancy(snapshot, plan)
    letters, styles = _letters(snapshot, rows)
    root = domains(snapshot, rows, letters)
    parts: list[RenderableType] = []
    if root.use:
        parts += [Text("Cards by domain", "bold"), _tree(snapshot, root, styles, width)]
        parts += [_legend(root, letters, styles, width)]
    if plan.locality is not None and plan.locality.job:
        parts += [Text(), Text("Tied groups", "bold"), localities(snapshot, plan, letters)]
        rest = len(plan.locality.job) - ROWS
        parts += [Text(f"and {number(rest)} more")] if rest > 0 else []
    return Group(*parts)


def _letters(snapshot: Snapshot, rows: Sequence[Row]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the letter of each tied job that starts, and the style of each mark, both as in the picture of nodes.

    A letter stands for one job here, the first that has it.
    """
    palette = Palette(snapshot, rows)
    pending = (job for job in snapshot.jobs if job.running is None and _is_tied(job))
    tied = {name for job in pending for name in names(job.name, job.count)}
    first: dict[str, str] = {}
    for job in palette:
        if job in tied:
            first.setdefault(palette.letter(job), job)
    styles = dict.fromkeys(MARKS, "dim")
    for letter, job in first.items():
        background, ink = palette.colours(job)
        styles[letter] = f"{ink} on {background}"
    return {job: letter for letter, job in first.items()}, styles


# --- tree ----------------------------------------------------------------------------------------------------


def domains(snapshot: Snapshot, rows: Sequence[Row], letters: Mapping[str, str]) -> Domain:
    """Return the cluster with the domains in it that have cards.

    Parameters
    ----------
    snapshot : Snapshot
    rows : sequence of Row
        Its nodes and who is on them; see `placement.report.occupancy`.
    letters : mapping of str to str
        Letters of jobs; new work of the others has a mark in common.
    """
    position = {name: node.domains for node in snapshot.nodes for name in names(node.name, node.count)}
    root = Domain("cluster", 0)
    known: dict[tuple[int, str], Domain] = {}
    for row in rows:
        above = root
        levels = [*(position[row.node].get(level, "") for level in snapshot.topology), row.node]
        for level, name in enumerate(levels, 1):
            if name:
                if (level, name) not in known:
                    known[level, name] = Domain(name, level)
                    above.parts.append(known[level, name])
                above = known[level, name]
        above.use = _use(row.cards, letters)
    _sum_up(root)
    return root


def _sum_up(domain: Domain) -> None:
    for part in domain.parts:
        _sum_up(part)
        _add(domain.use, part.use)


def _use(cards: Sequence[Card], letters: Mapping[str, str]) -> Use:
    use: Use = {}
    for (mark, parts), number_of in Counter(_kind(card, letters) for card in cards).items():
        for who, share in _shares(mark, parts).items():
            _add(use, {who: share * number_of})
    return use


def _kind(card: Card, letters: Mapping[str, str]) -> tuple[str, tuple[tuple[str, Fraction], ...]]:
    """Return what tells a card from others: the mark of what nobody has of it, and marks and shares of who is on it."""
    parts = [(RUNNING if part.running else letters.get(part.job, OTHER), part.share) for part in card.parts]
    return FREE if card.gpu.health == "healthy" else UNHEALTHY, tuple(parts)


def _shares(mark: str, parts: tuple[tuple[str, Fraction], ...]) -> Use:
    use: Use = {}
    for who, share in parts:
        _add(use, {who: share})
    if RUNNING in use:
        # a card that running work overfills is one card all the same
        use[RUNNING] = min(Fraction(1), use[RUNNING])
    use[mark] = 1 - sum(use.values(), Fraction(0))
    return use


def _add(use: Use, more: Use) -> None:
    for mark, cards in more.items():
        if cards:
            use[mark] = use.get(mark, Fraction(0)) + cards


def _tree(snapshot: Snapshot, root: Domain, styles: Mapping[str, str], width: int) -> Text:
    deep, most = _folded(root)
    lines = list(_lines(root, deep, most))
    heads = ("cards", "running", "new", "free")
    figures = [[number(float(figure)) for figure in domain.figures] for _, domain in lines]
    widths = [max(map(len, column)) for column in zip(heads, *figures, strict=True)]
    bar = min(BAR, int(root.figures[0]))
    heading = " / ".join((*snapshot.topology, "node"))
    label = min(
        width - sum(widths) - 2 * len(widths) - 2 - bar,
        max(Text(text).cell_len for text in (heading, *(branch + domain.name for branch, domain in lines))),
    )
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append_text(_row(plain(heading, "bold"), heads, label, widths)).append("\n")
    for (branch, domain), cells in zip(lines, figures, strict=True):
        name = plain(branch, "dim").append_text(plain(domain.name))
        text.append_text(_row(name, cells, label, widths)).append("  ")
        text.append_text(_bar(domain.use, styles)).append("\n")
    hidden = _hidden(root, deep, most)
    if hidden:
        text.append(f"{counted(hidden, 'narrower domain')} not drawn, for there are too many.\n")
    return text


def _row(label: Text, cells: Sequence[str], width: int, widths: Sequence[int]) -> Text:
    label.truncate(max(width, 1), overflow="ellipsis", pad=True)
    return label.append("".join(f"  {cell:>{cells_width}}" for cell, cells_width in zip(cells, widths, strict=True)))


def _bar(use: Use, styles: Mapping[str, str]) -> Text:
    """Return who has the cards: running work, jobs with letters, other new work, what is free.

    Where the letters are too many, those of less than a character's worth count as other new work.
    """
    cards = sum(use.values(), Fraction(0))
    places = min(int(cards), BAR)
    if len(use) > BAR / 2:
        use, every = {}, use
        for mark, share in every.items():
            _add(use, {OTHER if mark not in MARKS and share * places < cards else mark: share})
    letters = sorted(mark for mark in use if mark not in MARKS)
    marks = [mark for mark in (RUNNING, *letters, OTHER, FREE, UNHEALTHY) if mark in use]
    bar = Text()
    # shares get a character each, so what is free in part must give way for whole cards to keep theirs
    shares = [Fraction(int(use[mark])) if mark == FREE else use[mark] for mark in marks]
    for mark, characters in zip(marks, apportion(shares, places), strict=True):
        bar.append(mark * characters, styles[mark])
    bar.truncate(places)
    return bar


def _legend(root: Domain, letters: Mapping[str, str], styles: Mapping[str, str], width: int) -> Text:
    words = {letter: job for job, letter in letters.items()} | MARKS
    text = Text()
    line = 0
    for mark, word in words.items():
        if mark not in root.use:
            continue
        item = Text(f" {mark} ", styles[mark]).append_text(plain(f" {word}  "))
        if line and line + item.cell_len > width:
            text.append("\n")
            line = 0
        text.append_text(item)
        line += item.cell_len
    return text


# --- what is folded ------------------------------------------------------------------------------------------


def _folded(root: Domain) -> tuple[int, int]:
    """Return the narrowest level that is drawn whole, and how many of the next are drawn in each domain above."""
    every = list(_within(root))
    deepest = max(domain.level for domain in every)
    deep = max((level for level in range(deepest + 1) if _upto(every, level) <= LINES), default=0)
    parents = [domain for domain in every if domain.level <= deep and any(part.level > deep for part in domain.parts)]
    if not parents:
        return deep, 0
    return deep, max(0, (LINES - _upto(every, deep)) // len(parents) - 1)


def _upto(every: Sequence[Domain], level: int) -> int:
    return sum(domain.level <= level for domain in every)


def _hidden(root: Domain, deep: int, most: int) -> int:
    """Return how many domains are neither drawn nor counted in a line of those that are folded."""
    folded = [domain for domain in _within(root) if domain.level > deep]
    return sum(len(domain.parts) for domain in folded) if most else len(folded)


def _within(domain: Domain) -> Iterator[Domain]:
    yield domain
    for part in domain.parts:
        yield from _within(part)


def _lines(root: Domain, deep: int, most: int, above: str = "") -> Iterator[tuple[str, Domain]]:
    """Yield branch characters and domains from the top down; what is folded is a domain whose name counts it."""
    if root.level == 0:
        yield "", root
    drawn = [part for part in root.parts if part.level <= deep]
    drawn += _foremost([part for part in root.parts if part.level > deep], most)
    for part in drawn:
        last = part is drawn[-1]
        yield f"{above}{'└─ ' if last else '├─ '}", part
        if part.level <= deep:
            yield from _lines(part, deep, most, f"{above}{'   ' if last else '│  '}")


def _foremost(parts: list[Domain], most: int) -> list[Domain]:
    """Return the parts with most cards of tied jobs, then the fullest, and the rest as one; none if `most` is 0."""
    if not most:
        return []
    if len(parts) <= most + 1:
        return parts
    order = sorted(parts, key=_rank)
    rest = order[most:]
    alike = ", alike" if all(part.use == rest[0].use for part in rest) else ""
    whole = Domain(f"… {number(len(rest))} more{alike}", rest[0].level)
    for part in rest:
        _add(whole.use, part.use)
    return [*order[:most], whole]


def _rank(domain: Domain) -> tuple[Fraction, Fraction]:
    tied = sum((cards for mark, cards in domain.use.items() if mark not in MARKS), Fraction(0))
    return -tied, domain.use.get(FREE, Fraction(0)) / domain.figures[0]


# --- tied groups ---------------------------------------------------------------------------------------------


def localities(snapshot: Snapshot, plan: Plan, letters: Mapping[str, str]) -> Table:
    """Return the first tied groups: what was asked, the level that each spans, and its domains at each level."""
    found = plan.locality
    rows = [] if found is None else [*zip(found.job, found.group, found.copy, found.level, found.domains, strict=True)]
    several = {(job, group) for job, group, copy, _, _ in rows if copy}
    texts = ["", "job", "group", *(["copy"] if several else []), "asked", "spans"]
    grid = table(*texts, *snapshot.topology, "nodes", left=len(texts))
    for column in grid.columns[len(texts) :]:
        column.no_wrap, column.overflow = False, "fold"
    jobs = {name: job for job in snapshot.jobs if job.running is None for name in names(job.name, job.count)}
    for job, group, copy, level, used in rows[:ROWS]:
        numbers = [Text(number(copy) if (job, group) in several else "")] if several else []
        cells = [plain(job), plain(group), *numbers, plain(asked_of(jobs[job], group)), plain(level)]
        grid.add_row(letters.get(job, OTHER), *cells, *map(number, used))
    return grid


def asked_of(job: Job, path: str) -> str:
    """Return what a job asks of where a group of it lies."""
    words = [
        word
        for group, where in _groups(job.groups)
        if where == path and group.topology is not None
        for word in _asked(group.topology)
    ]
    for one in job.affinity:
        if path in (one.a, one.b):
            other = one.b if path == one.a else one.a
            words.append(f"{one.kind} {'with' if one.kind == 'together' else 'from'} {other}: {one.level}")
    return "; ".join(words)


def _asked(topology: Topology) -> Iterator[str]:
    if topology.required:
        yield f"required: {topology.required}"
    if topology.preferred:
        yield f"preferred: {topology.preferred}"
    for part in topology.slices:
        yield f"slices of {', '.join(map(str, part.sizes))}: {part.level}"
    if topology.balanced:
        yield f"balanced: {topology.balanced}"
    for spread in topology.spread:
        most = "" if spread.max_per_domain is None else f", at most {spread.max_per_domain} tasks in each"
        fewest = "" if spread.min_domains is None else f", {spread.min_domains} or more"
        yield f"spread: {spread.level}{most}{fewest}"


def _is_tied(job: Job) -> bool:
    return bool(job.affinity) or any(group.topology not in (None, Topology()) for group, _ in _groups(job.groups))


def _groups(groups: Sequence[TaskGroup], above: str = "") -> Iterator[tuple[TaskGroup, str]]:
    """Yield every group with its path, the outer ones first."""
    for group in groups:
        path = f"{above}{group.name}"
        yield group, path
        yield from _groups(group.groups, f"{path}/")
