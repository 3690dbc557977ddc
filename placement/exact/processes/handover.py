"""Objects from one process to another, with large arrays in memory that both see.

A message is a pickle. A small one travels through the socket itself. A large one is written once, its arrays straight
from where they lie, into a block of memory that has no name; only the block's descriptor goes through the socket, and
the receiver maps the block and builds its arrays on it without a copy.

Why a nameless block and its descriptor: the kernel frees it with the last process, mapping or unread message that
holds it, so nothing can stay behind whoever is killed when. Memory by name stays if a process dies between making and
removing it, `multiprocessing.shared_memory` too; and up to Python 3.12 that is removed as soon as any process that
attached to it ends, for each one's resource tracker takes itself for the owner. Nor is a nameless block bound by the
size of ``/dev/shm``, which is 64 MB in most containers.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import select
import socket
import struct
import tempfile
import threading
from array import array
from collections import deque

_HEAD = struct.Struct("<4sIQ")
"""What a message begins with: a mark, the parts of its block, and the bytes that follow or that the block has."""
_MARK = b"plc1"
_SIZE = struct.Struct("<Q")
INLINE = 4096
"""Bytes up to which a message travels in the socket: so few fit its buffer, and sending to a process that is stopped
does not block. Arrays smaller than that are part of the pickle."""
_ALIGN = 64
_NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)
_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class Beat:
    """A message that says no more than that the sender is alive."""


BEAT = Beat()


class Hurry:
    """A message that asks for what there is by now; it says nothing to whoever has answered already."""


HURRY = Hurry()


class Channel:
    """One end of a connection between two processes.

    Any thread may send; one at a time may receive.

    Parameters
    ----------
    connection : socket
        One end of a stream `socket.socketpair`.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._sending = threading.Lock()
        self._read = bytearray()
        self._blocks: deque[int] = deque()
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)

    def send(self, item: object) -> None:
        """Send an object; returns as soon as it is in memory that the other side can reach."""
        buffers: list[pickle.PickleBuffer] = []

        def is_small(buffer: pickle.PickleBuffer) -> bool:
            if buffer.raw().nbytes < INLINE:
                return True
            buffers.append(buffer)
            return False

        stream = pickle.dumps(item, protocol=5, buffer_callback=is_small)
        if not buffers and len(stream) <= INLINE:
            self._send(_HEAD.pack(_MARK, 0, len(stream)) + stream)
            return
        parts = [memoryview(stream), *(buffer.raw() for buffer in buffers)]
        block = _new_block()
        try:
            length = _write(block, parts)
            self._send(_HEAD.pack(_MARK, len(parts), length), block)
        finally:
            os.close(block)

    def beat(self) -> None:
        """Send a sign of life; where that would have to wait, the other side has enough to read."""
        if self._sending.acquire(blocking=False):
            try:
                self._socket.send(_HEAD.pack(_MARK, 0, 0), socket.MSG_DONTWAIT | _NO_SIGNAL)
            except BlockingIOError:
                pass
            finally:
                self._sending.release()

    def wait(self) -> None:
        """Wait until there is something to receive, or nothing will come any more."""
        if not self._read:
            self._poll.poll()

    def waiting(self) -> bool:
        """Return whether there is something to receive."""
        return bool(self._read) or bool(self._poll.poll(0))

    def receive(self, timeout: float | None = None) -> object:
        """Return the next object, or `BEAT`.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait for each part of a message that is not there yet; None waits as long as it takes.

        Raises
        ------
        TimeoutError
            If there is no whole message yet; what there is of it is kept.
        EOFError
            If the other side is gone and all that it sent has been read.
        ValueError
            If what came is no message. What unpickling raises is not caught either.
        """
        self._fill(_HEAD.size, timeout)
        mark, parts, length = _HEAD.unpack_from(self._read)
        if mark != _MARK or (not parts and length > INLINE):
            raise ValueError("not a message")
        size = _HEAD.size + (0 if parts else length)
        self._fill(size, timeout)
        content = bytes(self._read[_HEAD.size : size])
        del self._read[:size]
        if parts:
            return self._from_block(parts, length)
        return pickle.loads(content) if content else BEAT

    def close(self) -> None:
        """Let go of the connection; the other side reads its end."""
        with contextlib.suppress(OSError):
            self._socket.close()
        while self._blocks:
            os.close(self._blocks.popleft())

    def _send(self, data: bytes, block: int | None = None) -> None:
        attached = [] if block is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [block]))]
        with self._sending:
            sent = self._socket.sendmsg([data], attached, _NO_SIGNAL)
            if sent < len(data):
                self._socket.sendall(data[sent:], _NO_SIGNAL)

    def _fill(self, size: int, timeout: float | None) -> None:
        """Read until there are so many bytes."""
        while len(self._read) < size:
            if not self._poll.poll(None if timeout is None else timeout * 1000):
                raise TimeoutError
            try:
                data, blocks, _, _ = socket.recv_fds(self._socket, 1 << 16, 8, socket.MSG_DONTWAIT | _CLOSE_ON_EXEC)
            except BlockingIOError:
                continue
            except ConnectionResetError:  # it went without reading what it had been sent
                raise EOFError from None
            self._blocks.extend(blocks)
            if not data:
                raise EOFError
            self._read += data

    def _from_block(self, parts: int, length: int) -> object:
        if not self._blocks:
            raise ValueError("a message without its block")
        block = self._blocks.popleft()
        try:
            # private: whoever writes into an array changes their own copy of the page, and nobody else's
            view = memoryview(mmap.mmap(block, length, access=mmap.ACCESS_COPY))
        finally:
            os.close(block)
        found, at = [], _SIZE.size * parts
        for number in range(parts):
            (size,) = _SIZE.unpack_from(view, _SIZE.size * number)
            at = _aligned(at)
            found.append(view[at : at + size])
            at += size
        return pickle.loads(found[0], buffers=found[1:])


def _new_block() -> int:
    """Return the descriptor of a file that has no name, in memory where the system can do that."""
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):
            return os.memfd_create("placement")
    with tempfile.TemporaryFile(buffering=0) as file:
        return os.dup(file.fileno())


def _write(block: int, parts: list[memoryview]) -> int:
    """Write the parts' sizes and the parts, each on a boundary that suits any array; return the bytes in all."""
    # not through a mapping: where memory is short, writing raises an error, and touching a page kills the process
    with open(block, "wb", closefd=False) as file:
        at = file.write(b"".join(_SIZE.pack(part.nbytes) for part in parts))
        for part in parts:
            at += file.write(bytes(_aligned(at) - at))
            at += file.write(part)
    return at


def _aligned(at: int) -> int:
    return -(-at // _ALIGN) * _ALIGN
