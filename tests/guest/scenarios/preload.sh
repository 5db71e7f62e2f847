# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: ibv_reg_mr of GPU memory on the kernel's own RDMA core, through the preloaded library: unchanged programs
. /lab/cuda.sh
. /lab/dmabuf.sh
load_gpu
load_inbox
use_seed
check "the module is not for this core" eval '! modprobe nv_peer_mem'

without "ib_write_bw" "Couldn't allocate MR" pair ib_write_bw
for program in ib_write_bw ib_read_lat ib_send_lat; do
	check "$program --use_cuda" preloaded pair "$program"
	equal "$program: a translation on each side" 1,1 "$(translated /tmp/server),$(translated /tmp/client)"
done

as_in_ubuntu() { LD_LIBRARY_PATH=$SYMBOLIC preloaded "$@"; }
check "ib_write_bw with Ubuntu's libibverbs" as_in_ubuntu pair ib_write_bw
equal "ib_write_bw with Ubuntu's libibverbs: translations" 1,1 "$(translated /tmp/server),$(translated /tmp/client)"

preloaded cuda kiro
# The server's registration of host memory is not translated.
equal "KIRO: translations" 3 "$(translated /tmp/said)"
# The library of ib_gpudirect removes an access flag. It must do so before the preloaded library
# sees the flags, so it comes first.
LD_PRELOAD=/usr/local/lib/ib_gpudirect_preload.so:$PRELOAD cuda ib_gpudirect exchange

# seen LENGTH: transfers LENGTH bytes, and succeeds if the host finds the bytes in the GPU's memory.
seen() {
	local answer=no
	hold env LD_PRELOAD="$PRELOAD" NVPM_PRELOAD_LOG=1 python3 -B /lab/cuda/dma_buf.py seen "$1" "$SEED" &&
		answer=$(ask pattern "$(said target_offset)" "$1" "$SEED")
	ended_well && [ "$(said status),$answer" = 0,yes ]
}
for length in 1 4096 300001 8000000; do
	check "written by RDMA and seen from outside: $length bytes" seen "$length"
done

preloaded dma_buf corners
preloaded dma_buf freed dma-buf
preloaded dma_buf often 300
