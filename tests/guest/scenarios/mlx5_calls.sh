# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: verbs that only a ConnectX has, with GPU memory: new memory for a key, windows, XRC, DevX, queues on the GPU
. /lab/cuda.sh
load_neighbours
QUEUES=/usr/local/lib/gpu_queues.so

# queues_on_gpu OPTION...: transfers GPU memory with the queues and doorbells in GPU memory, too.
queues_on_gpu() { LD_PRELOAD=$QUEUES gpuverbs transfer --from 0 --to 8M --length 300001 --seed 5 "$@"; }

for support in 1 0; do
	load_module "persistent_api_support=$support"
	counting mlx5 rereg
	for program in ib_write_bw ib_send_lat; do
		check "$program over XRC, persistent_api_support=$support" pair "$program" -c XRC
	done
	if [ "$support" = 1 ]; then
		counting mlx5 window persistent
		counting mlx5 umem ok
		remember
		check "queues in GPU memory" queues_on_gpu
		check "they were pinned" test "$(grown calls_nvidia_p2p_get_pages_persistent)" -gt 2
	else
		counting mlx5 window revocable
		counting mlx5 umem ok
		remember
		check "queues in GPU memory, beside revocable memory" queues_on_gpu
		check "the queues were pinned for good" test "$(grown calls_nvidia_p2p_get_pages_persistent)" -gt 0
	fi
	unload_module
done
