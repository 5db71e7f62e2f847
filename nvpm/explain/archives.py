# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads the members of archives (tar and zip), with bounded memory."""

import tarfile
import zipfile
from typing import BinaryIO, Iterator, Tuple, cast

# A member of an archive: its name and its contents.
Inner = Tuple[str, BinaryIO]
TAR = (257, b"ustar")
ZIP = (b"PK\x03\x04", b"PK\x05\x06")
# zipfile reads the list of a zip file's members at once. An entry has at least 46 bytes.
LONGEST_LIST = 1 << 20
# The greatest size of a header in a tar archive. tarfile reads the long name and the other fields
# of a file as a whole, and a few hundred compressed bytes can become a gigabyte.
LONGEST_HEADER = 1 << 20
SPARSE = "a sparse file: make the archive without --sparse"
# The kinds of members that are such headers: long names of GNU tar, and the fields of pax.
HEADERS = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)


class Member(tarfile.TarInfo):
    """A member of an archive. Raises HeaderError if the member is a header that is too large, or
    the list of the parts of a sparse file, which has no limit."""

    # tarfile calls this method after it has read the block of the member, and before it reads the
    # contents. The public methods around it differ between the versions of Python.
    def _proc_member(self, archive):  # type: ignore[no-untyped-def]
        if self.type in HEADERS and self.size > LONGEST_HEADER:
            raise tarfile.HeaderError(f"a header of {self.size} bytes")
        if self.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.HeaderError(SPARSE)
        return super()._proc_member(archive)  # type: ignore[misc]

    def _proc_gnusparse_10(self, *_words):  # type: ignore[no-untyped-def]
        raise tarfile.HeaderError(SPARSE)


def is_tar(start: bytes) -> bool:
    """Returns whether a file with this beginning is a tar archive."""
    return start[TAR[0] :].startswith(TAR[1])


def is_zip(start: bytes) -> bool:
    """Returns whether a file with this beginning is a zip archive."""
    return start.startswith(ZIP)


def of_tar(file: BinaryIO) -> Iterator[Inner]:
    """Yields the files in a tar archive, which may be a pipe."""
    with tarfile.open(fileobj=file, mode="r|", tarinfo=Member) as archive:
        for member in archive:
            # tarfile keeps each member, and an archive may have millions of empty members.
            archive.members = []  # type: ignore[attr-defined]
            inner = archive.extractfile(member) if member.isfile() else None
            if inner:
                yield member.name, inner  # type: ignore[misc]


class ReadInParts:
    """A zip file for zipfile. Raises OSError if zipfile reads much at once, which it does for the
    list of members. A zip file has several records with the size of the list, which may differ."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(LONGEST_LIST + 1 if size < 0 else min(size, LONGEST_LIST + 1))
        if len(data) > LONGEST_LIST:
            raise OSError("the archive has too many members: unpack it first")
        return data


def of_zip(file: BinaryIO) -> Iterator[Inner]:
    """Yields the files in a zip archive. Raises OSError if the file is a pipe, or if the list of
    members is too large."""
    if not file.seekable():
        raise OSError("a zip archive cannot be read from a pipe: name the file, or unpack it first")
    with zipfile.ZipFile(cast(BinaryIO, ReadInParts(file))) as archive:
        for member in archive.infolist():
            if not member.filename.endswith("/"):
                with archive.open(member) as inner:
                    yield member.filename, inner  # type: ignore[misc]
