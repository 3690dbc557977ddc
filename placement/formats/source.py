"""The bytes of the files that an import is given: unpacked, and bounded in size.

Gzip and zip are unpacked by what the bytes are, not by the name. A zip's members are files of their own, called
``snapshot.zip/snapshot.json`` in messages; nothing is ever written to the disk.
"""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from placement.errors import InputError
from placement.snapshot.report import show
from placement.snapshot.strict import name_of, read

LARGEST = 2**31
"""Most bytes of all that a zip or gzip file unpacks to."""

MOST_MEMBERS = 1000
"""Most files in a zip."""

LONGEST_NAME = 1000
"""Characters of the name of a file in a zip."""

GZIP, ZIP = b"\x1f\x8b", (b"PK\x03\x04", b"PK\x05\x06")
UTF16 = (b"\xff\xfe", b"\xfe\xff")
"""How these files begin."""

DAMAGES = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError, OSError, IndexError),
)
"""What the reader of zip files raises of ones that are damaged, encrypted, or packed in a way that it does not know."""


@dataclass(frozen=True, slots=True)
class File:
    """One file to read.

    Attributes
    ----------
    name : str
        For messages.
    data : bytes
    format : str
        The format that the user named, or ``""``.
    node : str
        Node, or pattern of nodes, that the user said the file is about, or ``""``.
    """

    name: str
    data: bytes
    format: str = ""
    node: str = ""

    def error(self, what: str, remedy: str, path: str = "") -> InputError:
        """Return an error at a place of this file."""
        return InputError.one(what, remedy, path=path, source=self.name)

    def text(self) -> str:
        """Return the file as text.

        Raises
        ------
        InputError
            If it is not UTF-8.
        """
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as why:
            line = self.data.count(b"\n", 0, why.start) + 1
            raise self.error(
                f"byte {self.data[why.start]:#04x} is not UTF-8", "save the file as UTF-8", f"line {line}"
            ) from None


def files(path: str, format: str = "", node: str = "") -> Iterator[File]:  # noqa: A002 - the user's word for it
    """Yield the file at a path, standard input for ``-``, or the members of a zip.

    Raises
    ------
    InputError
        If it cannot be read, is damaged, or unpacks to more than `LARGEST` bytes.
    """
    yield from unpacked(name_of(path), read(path, InputError), format, node)


def unpacked(name: str, data: bytes, format: str = "", node: str = "") -> Iterator[File]:  # noqa: A002
    """Yield the file that bytes are, or the members of a zip; see `files`.

    Parameters
    ----------
    name : str
        For messages.
    data : bytes
    format, node : str
        Of all of them; see `File`.
    """
    budget = _Budget(name)
    if data.startswith(GZIP):
        data = _plain(name, data, budget)
    if not data.startswith(ZIP):
        yield File(name, _utf8(name, data), format, node)
        return
    for member, content in _members(name, data, budget):
        whole = f"{name}/{member}"
        plain = _plain(whole, content, budget) if content.startswith(GZIP) else content
        yield File(whole, _utf8(whole, plain), format, node)


def _utf8(name: str, data: bytes) -> bytes:
    """Return text in UTF-8 that is in UTF-16 with its mark, which is what ``>`` writes in Windows PowerShell."""
    if not data.startswith(UTF16):
        return data
    try:
        return data.decode("utf-16").encode()
    except UnicodeDecodeError as why:
        raise InputError.one(f"not UTF-16: {why.reason}", "save the file as UTF-8", source=name) from None


class _Budget:
    """How many bytes may still come out of a file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.left = LARGEST

    def take(self, data: bytes) -> bytes:
        """Return the data, having counted it."""
        self.left -= len(data)
        if self.left < 0:
            raise InputError.one(f"unpacks to more than {LARGEST:,} bytes", "give a smaller file", source=self.name)
        return data


def _plain(name: str, data: bytes, budget: _Budget) -> bytes:
    """Return what gzip packed: one part, or several one behind the other (RFC 1952, 2.2), and zeros behind them."""
    parts: list[bytes] = []
    try:
        while data:
            reader = zlib.decompressobj(wbits=31)
            parts.append(budget.take(reader.decompress(data, budget.left + 1)))
            if not reader.eof:
                raise InputError.one("the gzip file breaks off", "copy it again, whole", source=name)
            data = reader.unused_data.lstrip(b"\0")
            if data and not data.startswith(GZIP):
                raise InputError.one("there is something behind the end of the gzip file", "pack it again", source=name)
    except zlib.error as why:
        raise InputError.one(f"damaged gzip: {why}", "compress it again", source=name) from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _members(name: str, data: bytes, budget: _Budget) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the files in a zip; what it claims to unpack to is not believed."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
            if not 0 < len(infos) <= MOST_MEMBERS:
                what = f"{len(infos)} files, expected at most {MOST_MEMBERS}" if infos else "there is no file in it"
                raise InputError.one(what, "pack what is to be read", source=name)
            for info in infos:
                _refuse_name(name, info.filename)
                with archive.open(info) as member:
                    content = budget.take(member.read(budget.left + 1))
                yield info.filename, content
    except DAMAGES as why:
        raise InputError.one(
            f"damaged or encrypted zip: {why}", "pack it again, without a password", source=name
        ) from None


def _refuse_name(name: str, member: str) -> None:
    if len(member) > LONGEST_NAME or not member.isprintable():
        what = f"the file {show(member)} in it has a name that is too long or cannot be printed"
        raise InputError.one(what, "pack it again with plain names", source=name)
    path = PurePosixPath(member.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or (path.parts and path.parts[0].endswith(":")):
        raise InputError.one(
            f"the file {show(member)} in it points outside", "pack it again with plain names", source=name
        )
