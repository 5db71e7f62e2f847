# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""layout.py CC WORD...: what selftest.d/abi.py says of structures and numbers is what
<infiniband/verbs.h> says: a program in C is made of all of it, and compiled and run."""
import ctypes
import os
import subprocess
import sys
import tempfile

import abi

# The library's own copy of this one is larger where it is newer.
GROW = ("ibv_context", "ibv_pd", "ibv_qp", "ibv_port_attr", "ibv_qp_attr")


def lines():
    for name, value in vars(abi).items():
        if name == "IBV_WC":
            for number, word in enumerate(value):
                yield "IBV_WC_" + word, "IBV_WC_" + word, number
        elif name.startswith("IBV_"):
            yield name, name, value
        elif isinstance(value, type) and issubclass(value, (ctypes.Structure, ctypes.Union)) and value.__module__ == "abi":
            yield from structure(name, value)


def structure(name, kind):
    c_name = ("union " if issubclass(kind, ctypes.Union) else "struct ") + name
    if name not in GROW:
        yield name, "sizeof(%s)" % c_name, ctypes.sizeof(kind)
    for field in kind._fields_:
        # What begins so is room; what is behind it says whether it is enough.
        if not field[0].startswith("_"):
            place = getattr(kind, field[0])
            yield "%s.%s" % (name, field[0]), "offsetof(%s, %s)" % (c_name, field[0]), place.offset
            if not isinstance(field[1], type(ctypes.CFUNCTYPE(None))) and field[0] not in ("bind_mw", "qp_type", "ops"):
                yield "size of %s.%s" % (name, field[0]), "sizeof(((%s *)0)->%s)" % (c_name, field[0]), place.size


expected = list(lines())
with tempfile.TemporaryDirectory() as scratch:
    program = os.path.join(scratch, "layout")
    prints = "".join(f'printf("%zu\\n", (size_t)({text}));\n' for _, text, _ in expected)
    source = "#include <stddef.h>\n#include <stdio.h>\n#include <infiniband/verbs.h>\nint main(void)\n{\n" + prints + "}\n"
    subprocess.run([*sys.argv[1:], "-o", program, "-x", "c", "-"], input=source, text=True, check=True)
    found = [int(number) for number in subprocess.check_output([program]).split()]
assert len(found) == len(expected) > 100, len(found)
wrong = [f"FAILED: {what} is {truth}, not {number}" for (what, _, number), truth in zip(expected, found) if number != truth]
print("\n".join(wrong) or "ok layout")
sys.exit(bool(wrong))
