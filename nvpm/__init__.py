# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""nvpm: inspects and tests GPUDirect RDMA, with nv_peer_mem and without."""

# That of dkms.conf, as the check `version` sees to: nvpm also runs where there is no such file.
VERSION = "2.0.0"
