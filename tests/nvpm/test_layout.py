# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The structures and numbers in selftest/abi.py agree with <infiniband/verbs.h>. The test compiles
and runs a C program that prints the numbers, offsets and sizes of the header."""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from nvpm.selftest import abi

# These structures are larger in a newer library, so the test does not compare their sizes.
GROW = ("ibv_context", "ibv_pd", "ibv_qp", "ibv_port_attr", "ibv_qp_attr", "ibv_device_attr_ex")


# A compared number. It has a description, an expression in C, and a value in abi.py.
Compared = tuple[str, str, int]


def lines() -> Iterator[Compared]:
    for name, value in vars(abi).items():
        if name == "IBV_WC":
            for number, word in enumerate(value):
                yield "IBV_WC_" + word, "IBV_WC_" + word, number
        elif name.startswith("IBV_"):
            yield name, name, value
        elif (
            isinstance(value, type)
            and issubclass(value, (ctypes.Structure, ctypes.Union))
            and name.startswith("ibv_")
        ):
            yield from structure(name, value)
    # The fields before a context have fixed distances from it.
    for field in ("query_device_ex", "sz"):
        ours = abi.verbs_context.context.offset - getattr(abi.verbs_context, field).offset
        place = "offsetof(struct verbs_context, context) - offsetof(struct verbs_context, {})"
        yield f"verbs_context.{field}", place.format(field), ours
    yield "EXTENDED", "__VERBS_ABI_IS_EXTENDED", abi.EXTENDED


def structure(name: str, kind: type[ctypes.Structure] | type[ctypes.Union]) -> Iterator[Compared]:
    c_name = ("union " if issubclass(kind, ctypes.Union) else "struct ") + name
    if name not in GROW:
        yield name, f"sizeof({c_name})", ctypes.sizeof(kind)
    for field in kind._fields_:
        # Fields that start with `_` are padding. The offset of the next field already checks the
        # size of the padding.
        if not field[0].startswith("_"):
            place = getattr(kind, field[0])
            yield f"{name}.{field[0]}", f"offsetof({c_name}, {field[0]})", place.offset
            if not isinstance(field[1], type(ctypes.CFUNCTYPE(None))) and field[0] not in (
                "bind_mw",
                "qp_type",
                "ops",
            ):
                yield (
                    f"size of {name}.{field[0]}",
                    f"sizeof((({c_name} *)0)->{field[0]})",
                    place.size,
                )


def test_layout(tmp_path: Path) -> None:
    expected = list(lines())
    prints = "".join(f'printf("%zu\\n", (size_t)({text}));\n' for _, text, _ in expected)
    source = (
        "#include <stddef.h>\n#include <stdio.h>\n#include <infiniband/verbs.h>\n"
        "int main(void)\n{\n" + prints + "}\n"
    )
    compiler = os.environ.get("CC", "gcc-14").split()
    subprocess.run(
        [*compiler, "-o", tmp_path / "layout", "-x", "c", "-"], input=source, text=True, check=True
    )
    found = [int(number) for number in subprocess.check_output([tmp_path / "layout"]).split()]
    assert len(found) == len(expected) > 100
    assert [(what, truth) for (what, _, _), truth in zip(expected, found, strict=True)] == [
        (what, number) for what, _, number in expected
    ]
