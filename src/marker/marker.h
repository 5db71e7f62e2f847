/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef NVPM_MARKER_H
#define NVPM_MARKER_H

/*
 * A symbol of nv_peer_mem, which the marker uses so that it can be loaded only after nv_peer_mem.
 */
extern const char nvpm_version[];

#endif
