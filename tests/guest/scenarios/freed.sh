# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: memory is freed while it is registered, its address becomes another's, and RDMA goes on: who is hit, in three ways to register
. /lab/cuda.sh
. /lab/dmabuf.sh
load_gpu
load_rdma
load_module persistent_api_support=0
preloaded dma_buf freed revocable
unload_module
load_module persistent_api_support=1
preloaded dma_buf freed persistent
equal "nothing was translated: the real verb comes first" 0 "$(translated /tmp/said)"
unload_module
preloaded dma_buf freed dma-buf
equal "without the module each is translated" 2 "$(translated /tmp/said)"
