# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads the members of archives (tar and zip), with bounded memory."""

import struct
import tarfile
import zipfile
from typing import BinaryIO, Iterator, Tuple

# A member of an archive: its name and its contents.
Inner = Tuple[str, BinaryIO]
TAR = (257, b"ustar")
ZIP = (b"PK\x03\x04", b"PK\x05\x06")
# The record at the end of a zip file: its first bytes, its size, and the places of the number of
# members and of the size of their list. A comment of 64 KiB at most stands behind the record.
ZIP_END, ZIP_END_SIZE, ZIP_NUMBER, ZIP_SIZE = b"PK\x05\x06", 22, 10, 12
LONGEST_COMMENT = 1 << 16
# zipfile reads the whole list of members.
MOST_MEMBERS, LONGEST_LIST = 20000, 4 << 20
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


def of_zip(file: BinaryIO) -> Iterator[Inner]:
    """Yields the files in a zip archive. Raises OSError if the file is a pipe, or if the list of
    members is too large."""
    if not file.seekable():
        raise OSError("a zip archive cannot be read from a pipe: name the file, or unpack it first")
    end = file.seek(0, 2)
    file.seek(max(0, end - ZIP_END_SIZE - LONGEST_COMMENT))
    last = file.read()
    place = last.rfind(ZIP_END)
    if place >= 0 and len(last) >= place + ZIP_END_SIZE:
        (number,) = struct.unpack_from("<H", last, place + ZIP_NUMBER)
        (size,) = struct.unpack_from("<I", last, place + ZIP_SIZE)
        if number > MOST_MEMBERS or size > LONGEST_LIST:
            raise OSError("the archive has too many members: unpack it first")
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            if not member.filename.endswith("/"):
                with archive.open(member) as inner:
                    yield member.filename, inner  # type: ignore[misc]
