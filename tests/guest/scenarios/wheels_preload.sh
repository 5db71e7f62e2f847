# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: Mooncake, peercache, ibverbs and pyverbs, as their wheels have them, on the kernel's own RDMA core, through the preloaded library; and NIXL's and peercache's own dma-bufs
. /lab/cuda.sh
. /lab/dmabuf.sh
. /lab/wheels.sh
load_gpu
load_inbox
use_seed
ip link set lo up

python3 /lab/cuda/wheels.py moved mooncake 1 </dev/null >/tmp/out 2>&1
check "Mooncake cannot register without the library" grep -q "^fail registered" /tmp/out
grep "Failed to register memory" /tmp/out

# The library reports on stderr, which the held command shares with this scenario.
preload=(env LD_PRELOAD="$PRELOAD" NVPM_PRELOAD_LOG=1)
translations() {
	local name=$1
	shift
	moved "$name" "${preload[@]}" sh -c 'exec "$@" 2>/tmp/errors' sh "$@"
	equal "$name: translations" 4 "$(translated /tmp/errors)"
}
translations mooncake python3
translations ibverbs python3
# $SYMBOLIC has a libibverbs that is linked in Ubuntu's way. Both programs use this libibverbs.
for program in mooncake ibverbs; do
	LD_LIBRARY_PATH=$SYMBOLIC translations $program python3
done
translations peercache python3.11

DMABUF=1 moved peercache python3.11

"${preload[@]}" python3.11 /lab/cuda/programs.py kiro >/tmp/held 2>/tmp/errors || fail "pyverbs' wheel: KIRO fails"
checks "pyverbs' wheel"
equal "pyverbs' wheel: translations" 3 "$(translated /tmp/errors)"

export UCX_TLS=rc,cuda UCX_MEMTYPE_CACHE=n
detected "on the kernel's own core" "not detected"
check "on the kernel's own core: UCX takes dma-buf" grep -q "dmabuf is supported" /tmp/ucx
moved nixl python3
