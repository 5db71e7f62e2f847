# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: NIXL, peercache, pyverbs and libfabric, unchanged, between the GPU memory of two processes; and Mooncake, of which one process is killed
. /lab/cuda.sh
. /lab/wheels.sh
load_gpu
load_rdma
use_seed
ip link set lo up

# With UCX_TLS UCX cannot copy through host memory. NVIDIA's libcudart, with which UCX looks for
# allocations, does not run here, so UCX asks for the kind of each address.
export UCX_TLS=rc,cuda UCX_MEMTYPE_CACHE=n

# detected TEXT UCX NVPM: checks what NIXL's UCX prints about peer memory, and whether nvpm status
# says that NIXL finds the module.
detected() {
	rm -f /tmp/ucx
	UCX_LOG_LEVEL=debug UCX_LOG_FILE=/tmp/ucx python3 /lab/cuda/wheels.py started nixl
	check "$1: UCX" grep -qE "rxe0: cuda GPUDirect RDMA is $2" /tmp/ucx
	nvpm status --json >/tmp/status || true
	equal "$1: nvpm" "$3" "$(python3 -c '
import json
print(json.load(open("/tmp/status"))["programs"]["NIXL, by UCX"])')"
}
detected "without the module" "not detected" ""
load_module
detected "with the module" "detected by checking $PEERS/nv_mem/version" nv_peer_mem
served nixl python3
served peercache python3.11
# libfabric makes queues for as many peers as this variable says, and rxe has no room for 256.
FI_UNIVERSE_SIZE=2 served libfabric python3

python3.11 /lab/cuda/programs.py kiro >/tmp/held 2>/tmp/errors || fail "pyverbs' wheel: KIRO fails"
checks "pyverbs' wheel"

counting wheels killed mooncake
