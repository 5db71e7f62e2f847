# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The ground "ready": the ground "free", compiled before to assembly, which a release
# has for each architecture. It has the mitigations of all kernels; its calls and
# returns go through the kernel's own thunks, which that patches when it loads it.

nv_peer_mem-y += src/rt/free.o src/rt/ready.o
