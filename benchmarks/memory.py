"""The memory of a process and all that it started, sampled while they run; Linux alone tells."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType

EVERY = 0.05
"""Seconds between samples."""
RESCAN = 5
"""Samples between looks for processes that are new."""
PROC = Path("/proc")


class Watch:
    """Samples the memory of a process tree in another thread while a block runs.

    What is counted: the memory that each process has to itself, summed, and of pages that are shared (libraries, and
    arrays handed over) those of the process that has most of them, since the others have the same ones.

    Parameters
    ----------
    root : int
        Process id.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._peak = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @property
    def mebibytes(self) -> float | None:
        """The most memory that was in use at once; None where the system does not tell."""
        return round(self._peak / 1024, 1) if self._peak else None

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        pids: list[int] = []
        sample = 0
        while not self._over.wait(EVERY):
            if sample % RESCAN == 0:
                pids = tree(self._root)
            sample += 1
            self._peak = max(self._peak, together(pids))


def tree(root: int) -> list[int]:
    """Return a process and all that descend from it."""
    parents: dict[int, int] = {}
    for folder in PROC.glob("[0-9]*"):
        try:
            # the name in brackets may hold anything
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
    found = [root]
    for parent in found:
        found += [pid for pid, above in parents.items() if above == parent]
    return found


def together(pids: list[int]) -> int:
    """Return the KiB that processes hold together; one that is gone holds none."""
    held = [_held(pid) for pid in pids]
    own = sum(anonymous for anonymous, _, _ in held)
    return own + max((mapped for _, mapped, _ in held), default=0) + max((shared for _, _, shared in held), default=0)


def _held(pid: int) -> tuple[int, int, int]:
    """Return the KiB of a process's own, of mapped files and of shared memory."""
    try:
        text = (PROC / str(pid) / "status").read_text()
    except OSError:
        return 0, 0, 0
    fields = dict(entry.split(":", 1) for entry in text.splitlines() if entry.startswith("Rss"))
    sizes = [int(fields.get(name, "0 kB").split()[0]) for name in ("RssAnon", "RssFile", "RssShmem")]
    return sizes[0], sizes[1], sizes[2]
