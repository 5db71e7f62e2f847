# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""build.py KERNEL NAME TO [kept | node]: runs the image's own build of the module NAME.

TO gets the results, the words of make, and the files from which `make` recognizes the same build.
With `kept`, the driver's symbols come from the cache and the headers from the node, as after the
fast path of the driver's container. With `node`, driver and headers are those of the node."""

import shutil
import sys
import tempfile
from pathlib import Path

from keeper import build, places
from keeper.cache import Cache
from keeper.node import DRIVER, HOST, OFED

kernel, name, to = sys.argv[1], sys.argv[2], Path(sys.argv[3])
headers = Path(DRIVER) / f"usr/src/linux-headers-{kernel}"
here = places.Places(Path(DRIVER), headers, f"DRIVER_ROOT={DRIVER}", f"CORE_ROOT={OFED}")
release, cache = Path("/lab"), Cache(Path("/var/lib/nv_peer_mem"))


def built(found: places.Places) -> build.Built:
    work = Path(tempfile.mkdtemp())
    try:
        return build.build(release, found, kernel, name, work)
    except build.Failed:
        sys.stderr.write((work / "log").read_text(encoding="utf-8"))
        raise


of_node = Path(HOST) / headers.relative_to(DRIVER)
if sys.argv[4:] == ["node"]:
    here = places.Places(Path(HOST), of_node, f"DRIVER_ROOT={HOST}", here.core)
made = built(here)
if sys.argv[4:] == ["kept"]:
    cache.store_driver("kept", made.directory / "nvidia.symvers", made.header)
    here = places.Places(Path(HOST), of_node, f"NV_SRC={cache.driver('kept')}", here.core)
    made = built(here)
to.mkdir(parents=True)
for file in (f"{name}.ko", "nv_peer_mem_callback.ko", "nvidia.symvers"):
    if (made.directory / file).exists():
        shutil.copy(made.directory / file, to)
shutil.copy(made.directory.parent / "log", to)
words = build.settings(here, kernel, name)
(to / "words").write_text("\n".join(words) + "\n", encoding="utf-8")
symbols = Path(OFED) / f"usr/src/ofa_kernel/x86_64/{kernel}/Module.symvers"
shutil.copy(symbols, to / "core.symvers")
driver = Path(DRIVER) / f"lib/modules/{kernel}/kernel/drivers/video/nvidia.ko"
shutil.copy(driver, to / "nvidia.ko")
