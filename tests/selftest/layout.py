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
    source, program = os.path.join(scratch, "layout.c"), os.path.join(scratch, "layout")
    with open(source, "w") as file:
        file.write("#include <stddef.h>\n#include <stdio.h>\n#include <infiniband/verbs.h>\nint main(void)\n{\n")
        for _, text, _ in expected:
            file.write('\tprintf("%%zu\\n", (size_t)(%s));\n' % text)
        file.write("\treturn 0;\n}\n")
    subprocess.run(sys.argv[1:] + ["-o", program, source], check=True)
    found = list(map(int, subprocess.run([program], stdout=subprocess.PIPE, check=True).stdout.split()))
assert len(found) == len(expected) > 100, len(found)
wrong = [(what, number, truth) for (what, _, number), truth in zip(expected, found) if number != truth]
for what, number, truth in wrong:
    print("FAILED: %s is %d, not %d" % (what, truth, number))
sys.exit(bool(wrong))
