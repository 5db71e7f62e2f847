# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: 100,000 translated registrations leave no descriptor and no dma-buf
. /lab/cuda.sh
. /lab/dmabuf.sh
load_gpu
load_inbox
LD_PRELOAD=$PRELOAD dma_buf often 100000
