"""``nvidia-smi --query-gpu=… --format=csv``: a line for each card, with whatever fields were asked for.

``--query-compute-apps=…`` looks alike and has a line for each process; other queries are refused.
"""

from __future__ import annotations

import csv
import re

from placement.formats.ledger import Ledger
from placement.formats.nvidia_smi.facts import (
    MOST_INDEX,
    Card,
    Facts,
    absent,
    broken,
    mebibytes,
    mode,
    model,
)
from placement.formats.source import File

_FIELD = re.compile(r"[A-Za-z][\w.-]*( \[[^\]]+\])?", re.ASCII)
_USED = 1024
"""MiB above which memory is taken to be some process's: drivers keep less for themselves."""

_PENDING = ("retired_pages.pending", "remapped_rows.pending", "remapped_rows.failure")


def is_table(text: str) -> bool:
    """Return whether a text is one: a line of names of fields, one of which says which card it is."""
    cells = [cell.strip() for cell in text.removeprefix("\ufeff").partition("\n")[0].split(",")]
    named = all(_FIELD.fullmatch(cell) for cell in cells)
    return named and not {"uuid", "gpu_uuid", "index", "name", "gpu_name"}.isdisjoint(cells)


def read(file: File, ledger: Ledger) -> Facts:
    """Return what the lines say.

    Raises
    ------
    InputError
        If a line has another number of fields than the first, or lines are not of cards.
    """
    facts = Facts(file)
    lines = file.text().splitlines()
    keys = [cell.split(" [")[0].strip() for cell in lines[0].split(",")]
    processes: dict[str, str] = {}
    listed = "pid" in keys
    if "retired_pages.address" in keys or (listed and "gpu_uuid" not in keys):
        what = "its lines are not of cards" + ", and it does not say which card a process is on" * listed
        raise file.error(what, "print it with --query-gpu=index,uuid,name,memory.used, or with gpu_uuid", "line 1")
    numbered = "index" in keys
    if not (numbered or listed):
        ledger.assumed("indices of cards", "the order of the lines", file.name)
    # a name may have a comma only within quotes, which nvidia-smi does not print
    try:
        rows = list(csv.reader(lines[1:], skipinitialspace=True))
    except csv.Error as why:
        raise file.error(f"not CSV: {why}", "print it again, whole") from None
    for number, cells in enumerate(rows, 2):
        if not cells:
            continue
        where = f"line {number}"
        if len(cells) != len(keys):
            raise file.error(f"{len(cells)} fields, expected {len(keys)}", "print it again, whole", where)
        row = {key: cell.strip() for key, cell in zip(keys, cells, strict=True)}
        if listed:
            processes.setdefault(row["gpu_uuid"], where)
            continue
        index = row["index"] if numbered else str(len(facts.cards))
        if not (index.isascii() and index.isdigit() and len(index) < 6) or int(index) > MOST_INDEX:
            raise file.error(f"{index[:20]!r} is no index of a card", "print it again", where)
        if int(index) in facts.cards:
            raise file.error(f"card {int(index)} is listed twice", "print it again", where)
        facts.cards[int(index)] = _card(file, row, where, ledger)
        uuid = facts.cards[int(index)].uuid
        if uuid and any(card.uuid == uuid for key, card in facts.cards.items() if key != int(index)):
            raise file.error("a card is listed twice by its UUID", "print it with --query-gpu", where)
        facts.driver = facts.driver or ("" if absent(row.get("driver_version", "")) else row["driver_version"])
        count = row.get("count", "")
        if count.isascii() and count.isdigit() and len(count) < 6:
            facts.total = int(count)
    if listed:
        return Facts(file, processes=processes)
    if not facts.cards:
        raise file.error("there is no card in it", "print it again")
    if facts.total is not None and sorted(facts.cards) != list(range(facts.total)):
        raise file.error(f"it says that there are {facts.total} cards, and lists others", "print it again, without -i")
    facts.total = max(facts.cards) + 1
    return facts


def _card(file: File, row: dict[str, str], where: str, ledger: Ledger) -> Card:
    place = f"{file.name}: {where}"
    product, uuid = row.get("name", row.get("gpu_name", "")), row.get("uuid", row.get("gpu_uuid", ""))
    current, pending = mode(row.get("mig.mode.current", "")), mode(row.get("mig.mode.pending", ""))
    if current is not None and pending is not None and current != pending:
        ledger.contradiction("MIG mode that is pending is not the current one", "the current one", place)
    used = mebibytes(file, row.get("memory.used", ""), where)
    load = row.get("utilization.gpu", "").split(" ")[0]
    busy = (used is not None and used > _USED) or (load.isdigit() and load.strip("0") != "")
    if busy:
        ledger.assumed("process on a card", f"there is one: it is at work, or more than {_USED} MiB are used", place)
    action = row.get("gpu_recovery_action", "")
    ill = any(map(broken, row.values())) or not (absent(action) or action == "None")
    return Card(
        model="" if absent(product) or broken(product) else model(product),
        memory=mebibytes(file, row.get("memory.total", ""), where),
        uuid="" if absent(uuid) or broken(uuid) else uuid,
        mig=current if "mig.mode.current" in row else None,
        busy=True if busy else None,
        healthy=not (ill or any(row.get(key, "") == "Yes" or row.get(key, "") == "1" for key in _PENDING)),
        compute_capability=cap if re.fullmatch(r"\d{1,3}\.\d{1,3}", cap := row.get("compute_cap", "")) else "",
        where=place,
    )
