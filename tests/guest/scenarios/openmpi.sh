# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: Open MPI over UCX, both Debian's, moves GPU memory between two machines
. /lab/hosts.sh
load_neighbours
both_up
left use_seed
gpuverbs pattern --seed "$SEED" --length 3000001 >/tmp/pattern
mkdir -p /run/sshd
/usr/sbin/sshd
barrier ssh

# UCX without CUDA takes GPU memory for host memory, and would copy small messages. With thresholds
# of 0, UCX registers all memory with the device instead. UCX connects over TCP, because UCX's UD
# does not work over rdma_rxe, even with host memory.
# shellcheck disable=SC2054 # UCX's lists have commas
ucx=(-x UCX_NET_DEVICES=rxe0:1,eth0 -x UCX_TLS=rc_verbs,tcp,self
	-x UCX_ZCOPY_THRESH=0 -x UCX_RNDV_THRESH=0 -x UCX_RNDV_SCHEME=get_zcopy)

# job LENGTH...: runs gpumpi with one rank on each host.
job() {
	mpirun --allow-run-as-root --host left,right --map-by ppr:1:node --mca pml ucx --mca osc ucx \
		"${ucx[@]}" gpumpi /tmp/pattern /run/holding "$@" >/tmp/job 2>&1
}

without_module() {
	! job 100 && grep -E 'Assertion .* failed|Segmentation fault' /tmp/job
}
left check "without the module UCX gives up" without_module
barrier alone
right expect_log "for its registration was refused: EFAULT" \
	'rxe_(reg_user_mr: returned|mr_init_user: .*) err = -14'
load_module

lengths=(100 3000001)
slot=$((8 << 20))
if [ "$HOST" = left ]; then
	texts=("its own source" "what came back" "what MPI_Get fetched")
	job "${lengths[@]}" &
	job=$!
else
	texts=("what MPI_Send brought" "what MPI_Put brought")
fi
for length in "${lengths[@]}"; do
	wait_for "the job to hold" test -e /run/holding
	for n in "${!texts[@]}"; do
		check "$length bytes: ${texts[$n]} is in this GPU" in_gpu $((n * slot)) "$length" "$SEED"
	done
	rm /run/holding
done
left check "the job ends well" wait "${job-}"
barrier over
check "GPU memory was registered here" test "$(peer nv_mem num_alloc_mrs)" -gt 0
equal "and is not any more" "$(peer nv_mem num_alloc_mrs)" "$(peer nv_mem num_dealloc_mrs)"
