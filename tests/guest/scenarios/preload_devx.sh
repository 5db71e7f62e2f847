# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: GPU memory for the queues of a card (mlx5dv_devx_umem_reg), through the preloaded library
. /lab/cuda.sh
. /lab/dmabuf.sh
load_gpu
load_inbox
dma_buf devx pointer
preloaded dma_buf devx dma-buf
# One of the two translations is for the source, which is registered by the usual verb.
equal "translations" 2 "$(translated /tmp/said)"
check "a translation of mlx5's own command" grep -q '^nvpm_preload: mlx5dv_devx_umem_reg.*: registered as a dma-buf' /tmp/said
