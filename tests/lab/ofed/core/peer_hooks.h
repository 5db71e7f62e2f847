/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the kernel's own umem.c and device.c call, in the lines that `adapt`
 * puts there.
 */
#ifndef PEER_HOOKS_H
#define PEER_HOOKS_H

#include <linux/types.h>

struct ib_umem;

/*
 * Pinning failed with @err, nothing is pinned, the range is still charged to
 * the process. Returns zero if a peer took the range over.
 */
int ib_peer_umem_get(struct ib_umem *umem, int access, int err);

/* Whether the umem was a peer's, and is gone now. */
bool ib_peer_umem_release(struct ib_umem *umem);

void ib_peer_init(void);
void ib_peer_exit(void);

#endif
