/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef NVPM_MARKER_H
#define NVPM_MARKER_H

/* nv_peer_mem exports this symbol, so that nv_peer_mem must be loaded before the marker. */
extern const char nvpm_version[];

#endif
