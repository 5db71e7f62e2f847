/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * rxe that imports dma-bufs: what the line calls that `adapt` puts into rxe_verbs.c.
 */
#ifndef RXE_DMABUF_H
#define RXE_DMABUF_H

struct ib_device;

/* Gives a new device that operation, if the module's parameter says so. */
void rxe_dmabuf_init(struct ib_device *ibdev);

#endif
