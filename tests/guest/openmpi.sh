# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Functions for scenarios with Open MPI over UCX, whose two ranks run in this guest.
length=3000001 slot=$((8 << 20))

# UCX without CUDA takes GPU memory for host memory, and would copy small messages. With thresholds
# of 0, UCX registers all memory with the device instead.
ucx=(-x "UCX_NET_DEVICES=$HCA:1" -x "UCX_TLS=rc_x,self"
	-x UCX_ZCOPY_THRESH=0 -x UCX_RNDV_THRESH=0 -x UCX_RNDV_SCHEME=get_zcopy)

# job [OPTION...]: runs gpumpi with two ranks. Rank N waits while the file /tmp/holding.N exists.
# shellcheck disable=SC2016 # each rank's own number
job() {
	gpuverbs pattern --seed "$SEED" --length "$length" >/tmp/pattern
	mpirun --allow-run-as-root --oversubscribe -np 2 --mca pml ucx --mca osc ucx --mca btl '^openib' \
		"${ucx[@]}" "$@" \
		sh -c 'exec gpumpi /tmp/pattern "/tmp/holding.$OMPI_COMM_WORLD_RANK" '"$length" >/tmp/job 2>&1
}

# gives_up: succeeds if UCX ends a job because it cannot register the memory.
gives_up() {
	! job && grep -E 'Assertion .* failed|Segmentation fault|signal 11' /tmp/job
}

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

# exchanged TEXT [OPTION...]: runs a job, and lets the host look for the bytes in the GPU's memory.
exchanged() {
	local text=$1 job rank
	job "${@:2}" &
	job=$!
	for rank in 0 1; do wait_for "rank $rank to hold" test -e "/tmp/holding.$rank"; done
	arrived "$text: what came back" 0 1
	arrived "$text: what MPI_Get fetched" 0 2
	arrived "$text: what MPI_Send brought" 1 0
	arrived "$text: what MPI_Put brought" 1 1
	rm /tmp/holding.*
	check "$text: the job ends well" wait "$job"
	grep -v 'UCX  DEBUG' /tmp/job || true
}
