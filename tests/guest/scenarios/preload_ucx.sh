# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: Open MPI over UCX, both Debian's and unchanged, moves GPU memory on the kernel's own RDMA core, through the preloaded library
. /lab/dmabuf.sh
. /lab/openmpi.sh
load_gpu
load_inbox
use_seed
check "without the library UCX gives up" gives_up
# $SYMBOLIC has a libibverbs that is linked in Ubuntu's way. UCX must work with this libibverbs,
# too.
exchanged "preloaded" -x LD_LIBRARY_PATH="$SYMBOLIC" -x LD_PRELOAD="$PRELOAD" -x NVPM_PRELOAD_LOG=1
check "its memory was registered as dma-bufs" [ "$(translated /tmp/job)" -gt 0 ]
