# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Our own kernel crate, compiled before, with the module and core, to assembly, which a
# release has for each architecture. It has the mitigations of all kernels; its calls and
# returns go through the kernel's own thunks, which that patches when it loads it.

nv_peer_mem-y += src/kernel/kernel.o src/kernel/prebuilt.o
