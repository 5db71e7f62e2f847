/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef NVPM_MARKER_H
#define NVPM_MARKER_H

/* In nv_peer_mem; whoever uses it cannot be loaded without that module. */
extern const char nvpm_version[];

#endif
