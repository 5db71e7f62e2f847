# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: memory that peer memory refuses is registered as a dma-buf by the preloaded library, beside the module
. /lab/cuda.sh
. /lab/dmabuf.sh
load_gpu
load_rdma
load_module
use_seed

preloaded pair ib_write_bw
equal "memory that the module serves: translations" 0,0 "$(translated /tmp/server),$(translated /tmp/client)"

# The driver refuses to pin VMM memory that was made without gpuDirectRDMACapable, but it exports
# such memory as a dma-buf.
for call in get_pages get_pages_persistent; do echo "$call EINVAL 1 0" >"$NVIDIA/fail"; done
without "ib_write_bw of memory that the driver does not pin" "Couldn't allocate MR" pair ib_write_bw
for program in ib_write_bw ib_read_lat ib_send_lat; do
	check "$program of memory that the driver does not pin" preloaded pair "$program"
	equal "$program: a translation on each side" 1,1 "$(translated /tmp/server),$(translated /tmp/client)"
done
preloaded dma_buf corners
preloaded dma_buf freed dma-buf
echo clear >"$NVIDIA/fail"
