# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads the layout of a ConnectX's structures from the headers of the newest kernel.

The headers have two kinds of structures. A structure mlx5_ifc_NAME_bits of mlx5_ifc.h gives a
field's width in bits, as the size of an array of u8. All other structures are ordinary C with
big-endian members. This file reads both kinds with one parser. Structures of the second kind have a
name that begins with mlx5_ or is the whole name in the header.

LAB_MLX5_HEADERS is the directory include/linux/mlx5 of the kernel's headers."""

import functools
import os
import re
from pathlib import Path
from typing import NamedTuple

FILES = ["mlx5_ifc.h", "mlx5_ifc_fpga.h", "device.h", "qp.h", "cq.h", "doorbell.h", "driver.h"]

# The width in bits of the types of C members.
WIDTHS = {"u8": 8, "char": 8, "__be16": 16, "u16": 16, "__be32": 32, "u32": 32, "__be64": 64}

MEMBER = re.compile(
    r"\s*(?:(?P<kind>struct|union)\s*(?P<name>\w*)\s*(?P<open>\{)?|(?P<type>\w+))"
    r"(?(open)|\s*(?P<member>\w*)\s*(?P<dims>(?:\[[^\]]*\]\s*)*)(?::\s*(?P<bits>\d+)\s*)?;)"
)
AFTER_BRACE = re.compile(r"\s*(?:__packed)?\s*(?P<member>\w*)\s*(?P<dims>(?:\[[^\]]*\]\s*)*);")


@functools.cache
def source() -> str:
    """Returns the text of the headers, without comments."""
    where = Path(os.environ["LAB_MLX5_HEADERS"])
    text = "\n".join((where / name).read_text(encoding="utf-8") for name in FILES)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    # A struct_group() gives several members a common name, and moves none of them.
    return re.sub(r"struct_group\(\w+,(.*?)\n\s*\);", r"\1", text, flags=re.DOTALL)


# ---- constants ---------------------------------------------------------------------


@functools.cache
def constants() -> dict[str, int]:
    """Returns the constants of the headers' enums, and macros that are numbers. Constants that are
    made from other headers are left out."""
    numbers = re.findall(r"^#define (MLX5_\w+)\s+(0x[0-9a-f]+|\d+)$", source(), re.MULTILINE)
    found = {name: int(value, 0) for name, value in numbers}
    for body in re.findall(r"^enum\s*\w*\s*\{(.*?)\}", source(), re.MULTILINE | re.DOTALL):
        following: int | None = 0
        for entry in re.sub(r"^#.*", "", body, flags=re.MULTILINE).split(","):
            name, _, text = entry.strip().partition("=")
            if not name:
                continue
            value = number(text, found) if text.strip() else following
            following = None if value is None else value + 1
            if value is not None:
                found.setdefault(name.strip(), value)
    return found


def number(text: str, known: dict[str, int]) -> int | None:
    """Returns the value of a constant expression of C, or None if the expression needs more than
    numbers, known constants and their operators."""
    text = re.sub(r"\(u64\)|\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", text.strip())
    text = re.sub(r"\bBIT\((\w+)\)", r"(1 << \1)", text)
    text = re.sub(r"[A-Za-z_]\w*", lambda word: str(known.get(word[0], word[0])), text)
    if not re.fullmatch(r"[-+*/|&<>() 0-9a-fA-FxX]+", text):
        return None
    return int(eval(text.replace("/", "//"), {"__builtins__": {}}))


class Constants:
    """The constants, as attributes without the prefix MLX5_."""

    def __getattr__(self, name: str) -> int:
        value = constants()[f"MLX5_{name}"]
        setattr(self, name, value)
        return value


C = Constants()


def named(prefix: str) -> dict[int, str]:
    """Returns the names of the constants with a prefix, by their values and without the prefix."""
    return {
        value: name.removeprefix(prefix)
        for name, value in reversed(constants().items())
        if name.startswith(prefix)
    }


# ---- structures ---------------------------------------------------------------------


class Member(NamedTuple):
    """A member's offset and width in bits, the number of array elements, and the members of a
    structure."""

    offset: int
    width: int
    elements: int
    members: "dict[str, Member]"


@functools.cache
def body_of(name: str) -> tuple[str, str]:
    """Returns the kind of a structure, struct or union, and the text between its braces."""
    begin = re.search(rf"^(struct|union)\s+{name}\s*\{{", source(), re.MULTILINE)
    if not begin:
        raise KeyError(f"the kernel's headers have no structure {name}")
    return begin[1], source()[begin.end() : closing(source(), begin.end())]


def closing(text: str, at: int) -> int:
    """Returns the place of the brace that ends the block whose contents begin at AT."""
    depth = 1
    for brace in re.finditer(r"[{}]", text[at:]):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return at + brace.start()
    raise ValueError("a block in the kernel's headers does not end")


def elements(dims: str) -> int:
    """Returns the number of elements of an array; an array without a size at the end of a structure
    has none."""
    count = 1
    for size in re.findall(r"\[([^\]]*)\]", dims):
        count *= (number(size, constants()) or 0) if size.strip() else 0
    return count


@functools.cache
def structure(kind: str, body: str, bits: bool) -> tuple[int, dict[str, Member]]:
    """Returns the width and the members of a structure. With BITS, an element of u8 is one bit."""
    members: dict[str, Member] = {}
    at = end = offset = 0
    while match := MEMBER.match(body, at):
        at, after = match.end(), match
        inner: dict[str, Member] = {}
        if match["open"]:
            end_of_inner = closing(body, at)
            width, inner = structure(match["kind"], body[at:end_of_inner], bits)
            after = AFTER_BRACE.match(body, end_of_inner + 1) or match
            at = after.end()
        elif match["kind"]:
            width, inner = of(match["name"])
        else:
            width = 1 if bits else WIDTHS[match["type"]]
        dims = after["dims"]
        if bits and not inner:
            # The last dimension is the field's width.
            dims, _, last = dims.strip().rpartition("[")
            width = elements(f"[{last}")
        count = elements(dims)
        if match["bits"]:
            width = int(match["bits"])
        place = offset if kind == "struct" else 0
        if after["member"]:
            members[after["member"]] = Member(place, width, count, inner)
        else:
            for name, member in inner.items():
                members[name] = member._replace(offset=place + member.offset)
        offset += width * count
        end = max(end, place + width * count)
    return end, members


def of(name: str) -> tuple[int, dict[str, Member]]:
    """Returns the width and the members of a structure by its whole name."""
    return structure(*body_of(name), name.startswith("mlx5_ifc_"))


def full_name(name: str) -> str:
    return name if name.startswith(("mlx5_", "health_")) else f"mlx5_ifc_{name}_bits"


def size(name: str) -> int:
    """Returns the size of a structure in bytes."""
    return of(full_name(name))[0] // 8


@functools.cache
def place(name: str, path: str) -> tuple[int, int]:
    """Returns the offset and the width in bits of the field PATH, such as `qpc.st` or `in[1]`."""
    offset, (width, members) = 0, of(full_name(name))
    for part in path.split("."):
        word, _, index = part.partition("[")
        if word not in members:
            raise KeyError(f"{name} has no field {path}")
        member = members[word]
        width, members = member.width, member.members
        offset += member.offset + width * int(index.rstrip("]") or 0)
    return offset, width


def byte_of(name: str, path: str) -> int:
    """Returns the offset of a field in bytes."""
    return place(name, path)[0] // 8


@functools.cache
def access(name: str, path: str) -> tuple[int, int, int, int]:
    """Returns the bytes around a field, first and end, and the shift and the mask to reach it."""
    offset, width = place(name, path)
    first, end = offset // 8, (offset + width + 7) // 8
    return first, end, end * 8 - offset - width, (1 << width) - 1


class View:
    """A structure in a buffer. Its fields are read and written by their names."""

    __slots__ = ("base", "data", "name")

    def __init__(self, name: str, data: bytes | bytearray, base: int = 0) -> None:
        self.name, self.data, self.base = name, data, base

    def __getitem__(self, path: str) -> int:
        first, end, shift, mask = access(self.name, path)
        return int.from_bytes(self.data[self.base + first : self.base + end]) >> shift & mask

    def __setitem__(self, path: str, value: int) -> None:
        assert isinstance(self.data, bytearray)
        first, end, shift, mask = access(self.name, path)
        first, end = self.base + first, self.base + end
        old = int.from_bytes(self.data[first:end])
        new = old & ~(mask << shift) | (value & mask) << shift
        self.data[first:end] = new.to_bytes(end - first)

    def update(self, **values: int) -> None:
        for path, value in values.items():
            self[path] = value

    def part(self, path: str, name: str) -> "View":
        """Returns the structure NAME that lies at the field PATH."""
        return View(name, self.data, self.base + byte_of(self.name, path))


def new(name: str) -> View:
    """Returns a structure in a buffer of its own, filled with zeros."""
    return View(name, bytearray(size(name)))
