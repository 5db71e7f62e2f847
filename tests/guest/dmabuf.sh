# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Functions for scenarios with dma-bufs, which the kernel's own driver of the emulated ConnectX
# takes.

PRELOAD=/usr/local/lib/libnvpm_preload.so

# A libibverbs that is linked as Ubuntu's.
SYMBOLIC=/usr/local/lib/lab/symbolic

# insert FILE [PARAMETER=VALUE...]: loads a module from a file, and its dependencies by name.
insert() {
	local needed
	for needed in $(modinfo -F depends "$1" | tr , ' '); do modprobe "$needed"; done
	insmod "$@"
}

# The RDMA core and the drivers as the kernel has them.
INBOX=/lib/modules/$(uname -r)/kernel/drivers/infiniband

# load_inbox: loads the kernel's own RDMA core, which has no peer memory, and its own driver.
load_inbox() {
	modprobe e1000e
	insert "$INBOX/core/ib_core.ko"
	# For some kernels the lab's core also has an ib_uverbs, which modprobe would take.
	insert "$INBOX/core/ib_uverbs.ko"
	insert "$INBOX/hw/mlx5/mlx5_ib.ko"
	start_rdma
}

# preloaded COMMAND...: runs COMMAND with the library, which reports its actions on stderr.
preloaded() { LD_PRELOAD=$PRELOAD NVPM_PRELOAD_LOG=1 "$@"; }

# translated FILE: counts the registrations that the log reports as translated.
translated() { grep -c '^nvpm_preload: .*: registered as a dma-buf' "$@"; }
