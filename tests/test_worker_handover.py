"""Messages between processes: whole or not at all, arrays without copies, and no trust in what comes."""

from __future__ import annotations

import os
import pickle
import socket
import struct
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
import worker_cases as cases

from placement.compile import compile as compile_snapshot
from placement.exact.processes.handover import BEAT, INLINE, Channel
from placement.generate import generate

Ends = tuple[Channel, Channel]


@pytest.fixture
def ends() -> Iterator[Ends]:
    one, other = map(Channel, socket.socketpair())
    yield one, other
    one.close()
    other.close()


@pytest.fixture
def raw() -> Iterator[tuple[socket.socket, Channel]]:
    one, other = socket.socketpair()
    channel = Channel(other)
    yield one, channel
    one.close()
    channel.close()


ITEMS = [
    None,
    "short",
    b"x" * (INLINE - 30),
    b"x" * INLINE,
    b"x" * 10**6,
    np.zeros(0, dtype=np.int64),
    np.arange(3, dtype=np.int32),
    np.arange(10**5, dtype=np.int64),
    np.arange(10**5, dtype=np.int64)[::7],
    np.arange(10**5, dtype=np.int64).reshape(100, -1).T,
    np.arange(10**4) % 2 == 0,
    np.broadcast_to(np.int64(7), 10**4),
]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: type(item).__name__)
def test_there_and_back(ends: Ends, item: object) -> None:
    ends[0].send([item, "more"])
    found = ends[1].receive(5)
    assert isinstance(found, list)
    if isinstance(item, np.ndarray):
        assert found[0].dtype == item.dtype
        np.testing.assert_array_equal(found[0], item)
        found[0][...] = 0  # it belongs to whoever got it
    else:
        assert found[0] == item


def same(one: Any, other: Any) -> bool:
    """Whether two objects are equal, and the arrays within them."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if is_dataclass(one):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def test_an_instance() -> None:
    instance = compile_snapshot(generate(nodes=2000))
    one, other = map(Channel, socket.socketpair())
    one.send(instance)
    copy = other.receive(5)
    assert same(instance, copy)
    one.close()
    other.close()


def test_messages_wait_in_order(ends: Ends) -> None:
    for number in range(20):
        ends[0].send(np.full(2000, number))
        ends[0].send(number)
        ends[0].beat()
    for number in range(20):
        assert np.array_equal(ends[1].receive(5), np.full(2000, number))  # type: ignore[arg-type]
        assert ends[1].receive(5) == number
        assert ends[1].receive(5) is BEAT
    with pytest.raises(TimeoutError):
        ends[1].receive(0)


def test_many_senders(ends: Ends) -> None:
    def send(number: int) -> None:
        for _ in range(50):
            ends[0].send((number, np.full(number * 300, number)))
            ends[0].beat()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    count = 0
    while count < 200:
        item = ends[1].receive(10)
        if isinstance(item, tuple):
            assert len(item[1]) == 300 * item[0]
            assert (item[1] == item[0]).all()
            count += 1
    for thread in threads:
        thread.join()


def test_the_end_comes_after_what_was_sent(ends: Ends) -> None:
    ends[1].send("never read")
    ends[0].send(np.arange(5000))
    ends[0].close()
    assert len(ends[1].receive(5)) == 5000  # type: ignore[arg-type]
    with pytest.raises(EOFError):
        ends[1].receive(5)
    with pytest.raises(ConnectionError):
        ends[1].send("nobody there")


def test_a_beat_does_not_wait(ends: Ends) -> None:
    for _ in range(100_000):
        ends[0].beat()
    assert ends[1].receive(0) is BEAT


def test_part_of_a_message_is_kept(raw: tuple[socket.socket, Channel]) -> None:
    content = pickle.dumps("whole")
    message = struct.pack("<4sIQ", b"plc1", 0, len(content)) + content
    for byte in message[:-1]:
        raw[0].send(bytes([byte]))
        with pytest.raises(TimeoutError):
            raw[1].receive(0)
    raw[0].send(message[-1:])
    assert raw[1].receive(0) == "whole"


@pytest.mark.parametrize(
    "data",
    [
        b"Set parameter Username\n",
        struct.pack("<4sIQ", b"plc1", 0, 2**63),
        struct.pack("<4sIQ", b"plc1", 3, 100),
        struct.pack("<4sIQ", b"plc1", 0, 4) + b"\xff" * 4,
    ],
    ids=["text", "length", "no block", "no pickle"],
)
def test_garbage(raw: tuple[socket.socket, Channel], data: bytes) -> None:
    raw[0].send(data)
    with pytest.raises((ValueError, pickle.UnpicklingError)):
        raw[1].receive(5)


@pytest.mark.parametrize("size", [0, 10, 100, 5000])
def test_a_block_that_is_not_what_was_said(raw: tuple[socket.socket, Channel], size: int) -> None:
    block = os.memfd_create("test")
    os.write(block, b"\xff" * size)
    socket.send_fds(raw[0], [struct.pack("<4sIQ", b"plc1", 2, 5000)], [block])
    os.close(block)
    with pytest.raises((ValueError, struct.error, pickle.UnpicklingError)):
        raw[1].receive(5)


def test_no_copies_of_arrays(ends: Ends) -> None:
    array = np.ones(10**7)
    tracemalloc.start()
    ends[0].send(array)
    copy = ends[1].receive(5)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.array_equal(copy, array)  # type: ignore[arg-type]
    assert most < array.nbytes / 50


def test_descriptors_are_closed(ends: Ends) -> None:
    before = set(os.listdir("/proc/self/fd"))
    kept = []
    for _ in range(50):
        ends[0].send(np.ones(10**4))
        kept.append(ends[1].receive(5))
    # each that is not read, too, once the channel is closed
    ends[0].send(np.ones(10**4))
    ends[0].send(np.ones(10**4))
    kept.clear()
    assert cases.wait_until(lambda: set(os.listdir("/proc/self/fd")) <= before)


def test_without_blocks_in_memory() -> None:
    """Where the system has none, a file does as well."""
    program = (
        "import os, socket, numpy\n"
        "if hasattr(os, 'memfd_create'): del os.memfd_create\n"
        "from placement.exact.processes.handover import Channel\n"
        "one, other = map(Channel, socket.socketpair())\n"
        "one.send(numpy.arange(10**5))\n"
        "assert (other.receive(5) == numpy.arange(10**5)).all()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
