"""What nvidia-smi printed on a node, to what a snapshot says of its cards."""

from __future__ import annotations

from collections.abc import Sequence

from placement.formats.ledger import Ledger
from placement.formats.source import File
from placement.snapshot import Snapshot


def read(files: Sequence[File], snapshot: Snapshot | None, ledger: Ledger) -> Snapshot:
    """Return a snapshot with what the files say of its nodes.

    Parameters
    ----------
    files : sequence of File
        Each of the node, or the nodes that match the pattern, in `File.node`; without one, of a node called ``node``.
    snapshot : Snapshot, optional
        None: the nodes are those of the files.
    ledger : Ledger
        Gets what was read, assumed and ignored.

    Raises
    ------
    InputError
        If a file is none of the outputs that are known, is damaged, or is about no node of the snapshot.
    """
    return snapshot if snapshot is not None else Snapshot()
