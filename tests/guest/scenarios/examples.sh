# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the examples: what they say without the module, and that with it they register CUDA memory
. /lab/cuda.sh
load_neighbours
for language in c rust; do
	without "example in $language" 'ibv_reg_mr: Bad address.*: is nv_peer_mem loaded\?' "register_gpu-$language"
done
load_module
for language in c rust; do
	before=$(peer nv_mem num_alloc_mrs)
	check "example in $language" "register_gpu-$language" rxe0
	equal "example in $language: registrations" $((before + 1)) "$(peer nv_mem num_alloc_mrs)"
done
