# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""python3 -B DIRECTORY WORD...: what `nvpm` runs. NVPM_SYSROOT= is another root directory, for tests."""

import io
import os
import signal
import sys

# This directory is the package nvpm: its parent is where Python finds it.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Who has seen enough (nvpm status | head) ends this without a word.
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
# Whatever the locale is.
sys.stdout = io.TextIOWrapper(
    sys.stdout.buffer, encoding="utf-8", errors="surrogateescape", line_buffering=True
)
try:
    from nvpm.commands import main
    from nvpm.machine import Machine

    code = main(Machine(os.environ.get("NVPM_SYSROOT", "")), sys.argv[1:])
except ImportError as error:
    if (error.name or "").split(".")[0] == "nvpm":
        raise  # a mistake of ours, and no lack of Python's
    sys.stderr.write(f"nvpm: this needs all of Python 3 ({error}): install the package python3.\n")
    code = 3
except KeyboardInterrupt:
    code = 128 + signal.SIGINT
sys.exit(code)
