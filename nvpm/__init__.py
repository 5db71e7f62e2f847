# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""nvpm: inspects and tests GPUDirect RDMA with nv_peer_mem."""
