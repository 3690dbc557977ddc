"""The bytes of the files that an import is given: unpacked, and bounded in size.

Gzip and zip are unpacked by what the bytes are, not by the name. A zip's members are files of their own, called
``snapshot.zip/snapshot.json`` in messages; nothing is ever written to the disk.
"""

from __future__ import annotations

import io
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
    name = name_of(path)
    data = read(path, InputError)
    if data.startswith(b"\x1f\x8b"):
        data = _unpacked(name, data)
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        for member, content in _members(name, data):
            yield File(f"{name}/{member}", content, format, node)
    else:
        yield File(name, data, format, node)


def _unpacked(name: str, data: bytes) -> bytes:
    reader = zlib.decompressobj(wbits=31)
    try:
        plain = reader.decompress(data, LARGEST)
        if reader.unconsumed_tail:
            raise InputError.one(f"unpacks to more than {LARGEST:,} bytes", "give a smaller file", source=name)
        plain += reader.flush()
    except zlib.error as why:
        raise InputError.one(f"damaged gzip: {why}", "compress it again", source=name) from None
    if not reader.eof:
        raise InputError.one("the gzip file breaks off", "copy it again, whole", source=name)
    return plain


def _members(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the files in a zip; what it claims to unpack to is not believed."""
    left = LARGEST
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
            if len(infos) > MOST_MEMBERS:
                raise InputError.one(
                    f"{len(infos)} files, expected at most {MOST_MEMBERS}", "give a smaller zip", source=name
                )
            for info in infos:
                _refuse_climbing(name, info.filename)
                with archive.open(info) as member:
                    content = member.read(left + 1)
                left -= len(content)
                if left < 0:
                    raise InputError.one(f"unpacks to more than {LARGEST:,} bytes", "give a smaller zip", source=name)
                yield info.filename, content
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as why:
        raise InputError.one(
            f"damaged or encrypted zip: {why}", "pack it again, without a password", source=name
        ) from None


def _refuse_climbing(name: str, member: str) -> None:
    path = PurePosixPath(member.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or (path.parts and path.parts[0].endswith(":")):
        raise InputError.one(
            f"the file {show(member)} in it points outside", "pack it again with plain names", source=name
        )
