/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * rxe that imports dma-bufs: the function that `adapt` makes rxe_verbs.c call.
 */
#ifndef RXE_DMABUF_H
#define RXE_DMABUF_H

struct ib_device;

/* Gives a new device the operation that registers a dma-buf, if the module's parameter says so. */
void rxe_dmabuf_init(struct ib_device *ibdev);

#endif
