# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""nvpm inspects and tests GPUDirect RDMA on a machine with or without nv_peer_mem."""

import os

# The version, as in dkms.conf. It is repeated here because nvpm also runs without dkms.conf. The
# check `version` fails if the two versions differ.
VERSION = "2.0.0"

# The commit from which this copy of nvpm was made. git archive replaces the words between the
# dollar signs by the commit, as .gitattributes demands. All packages and files of a release are
# made from such an archive.
COMMIT = "$Format:%H$"


def release() -> str:
    """Returns the version and the commit, because several commits may have the same version. A
    checkout may have changes that are in no commit, so for a checkout the text says "a checkout" in
    place of the commit."""
    source = "a checkout" if COMMIT.startswith("$") else f"commit {COMMIT[:12]}"
    return f"nvpm {VERSION} ({source})"


def program() -> str:
    """Returns the path with which Python runs nvpm. It is the directory of the package or, if nvpm
    is a single file, the path of that file."""
    package = os.path.dirname(os.path.abspath(__file__))
    return package if os.path.isdir(package) else os.path.dirname(package)
