# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Copies the bytes of a file to a CUDA buffer and writes them by RDMA to another one, says
where both are in the GPU's memory, and waits: for the host to look into the file behind
the BAR."""
import sys

from lab import *
from rdma import *

with open(sys.argv[1], "rb") as file:
    data = file.read()
context()
source, target = alloc(len(data)), alloc(len(data))
put(source, data)
call("cuMemsetD8_v2", target, 0, len(data))
hca = Hca()
from_, to = hca.register(source, len(data)), hca.register(target, len(data))
if hca.pair().write(from_, source, len(data), to.rkey, target):
    sys.exit("the write failed")
print(f"source_offset={bar_offset(source)}")
print(f"target_offset={bar_offset(target)}")
hold()
for thing in (from_, to, hca):
    thing.close()
