# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""nvpm: inspects and tests GPUDirect RDMA, with nv_peer_mem and without."""

import os

# The version of dkms.conf, repeated here because nvpm also runs without that file; the check
# `version` compares both.
VERSION = "2.0.0"

# The commit: git archive puts it in the place of the words between the dollar signs (see
# .gitattributes). All packages and files of a release are made from such an archive.
COMMIT = "$Format:%H$"


def release() -> str:
    """Returns the version with the commit, which distinguishes builds of one version. A checkout
    may have changes without a commit, so only "a checkout" is said."""
    source = "a checkout" if COMMIT.startswith("$") else f"commit {COMMIT[:12]}"
    return f"nvpm {VERSION} ({source})"


def program() -> str:
    """Returns the path that Python runs: the directory of the package, or nvpm as one file."""
    package = os.path.dirname(os.path.abspath(__file__))
    return package if os.path.isdir(package) else os.path.dirname(package)
