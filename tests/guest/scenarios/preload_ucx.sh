# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: Open MPI over UCX, both Debian's and unchanged, moves GPU memory on the kernel's own RDMA core, through the preloaded library
. /lab/dmabuf.sh
load_gpu
load_inbox
use_seed
length=3000001 slot=$((8 << 20))
gpuverbs pattern --seed "$SEED" --length "$length" >/tmp/pattern

# openmpi.sh has the same options, and explains them. Both ranks run in this guest.
# shellcheck disable=SC2054 # UCX's lists have commas
ucx=(-x UCX_NET_DEVICES=rxe0:1,eth0 -x UCX_TLS=rc_verbs,tcp,self
	-x UCX_ZCOPY_THRESH=0 -x UCX_RNDV_THRESH=0 -x UCX_RNDV_SCHEME=get_zcopy)

# job [OPTION...]: runs gpumpi with two ranks. Rank N waits while the file /tmp/holding.N exists.
# shellcheck disable=SC2016 # each rank's own number
job() {
	mpirun --allow-run-as-root --oversubscribe -np 2 --mca pml ucx --mca osc ucx --mca btl '^openib' \
		"${ucx[@]}" -x RDMAV_DRIVERS "$@" \
		sh -c 'exec gpumpi /tmp/pattern "/tmp/holding.$OMPI_COMM_WORLD_RANK" '"$length" >/tmp/job 2>&1
}

refused() {
	! job && grep -E 'Assertion .* failed|Segmentation fault|signal 11' /tmp/job
}
check "without the library UCX gives up" refused

# slots RANK: prints the offset of the rank's slots in the GPU's memory. The rank's first mapping of
# GPU memory begins with the slots.
slots() {
	local pid
	pid=$(pgrep -f "^gpumpi /tmp/pattern /tmp/holding.$1 ")
	printf '%d\n' "0x$(awk '/nvidia-lab/ { print $3; exit }' "/proc/$pid/maps")"
}

# arrived TEXT RANK SLOT: checks that the host finds the pattern in SLOT of RANK.
arrived() {
	check "$1" [ "$(ask pattern "$(($(slots "$2") + $3 * slot))" "$length" "$SEED")" = yes ]
}

# In Ubuntu, too, UCX is linked with a libibverbs that is linked in this way.
job -x LD_LIBRARY_PATH="$SYMBOLIC" -x LD_PRELOAD="$PRELOAD" -x NVPM_PRELOAD_LOG=1 &
job=$!
for rank in 0 1; do wait_for "rank $rank to hold" test -e "/tmp/holding.$rank"; done
arrived "what came back" 0 1
arrived "what MPI_Get fetched" 0 2
arrived "what MPI_Send brought" 1 0
arrived "what MPI_Put brought" 1 1
rm /tmp/holding.*
check "the job ends well" wait "$job"
cat /tmp/job
check "and its memory was registered as dma-bufs" [ "$(translated /tmp/job)" -gt 0 ]
