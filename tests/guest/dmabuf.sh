# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Functions for scenarios with dma-bufs. These scenarios use an rxe to which the lab has added
# support for dma-bufs (tests/lab/ofed).

# This driver of rxe in user space can register dma-bufs, which the preloaded library needs.
PRELOAD=/usr/local/lib/libnvpm_preload.so
export RDMAV_DRIVERS=/usr/local/lib/lab/librxe

# A libibverbs that is linked as Ubuntu's.
SYMBOLIC=/usr/local/lib/lab/symbolic

# insert FILE [PARAMETER=VALUE...]: loads a module from a file, and its dependencies by name.
insert() {
	local needed
	for needed in $(modinfo -F depends "$1" | tr , ' '); do modprobe "$needed"; done
	insmod "$@"
}

# load_inbox: loads the kernel's own RDMA core, which has no peer memory, and the lab's rxe.
load_inbox() {
	modprobe e1000e
	insert "/lib/modules/$(uname -r)/kernel/drivers/infiniband/core/ib_core.ko"
	modprobe ib_uverbs
	insert /lib/nv_peer_mem/inbox/rdma_rxe.ko dmabuf=1
	start_rdma
}

# preloaded COMMAND...: runs COMMAND with the library, which reports its actions on stderr.
preloaded() { LD_PRELOAD=$PRELOAD NVPM_PRELOAD_LOG=1 "$@"; }

# translated FILE: counts the registrations that the log reports as translated.
translated() { grep -c '^nvpm_preload: .*: registered as a dma-buf' "$@"; }
