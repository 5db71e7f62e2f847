/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef NVPM_MARKER_H
#define NVPM_MARKER_H

/* Exported by nv_peer_mem: a module that uses it needs nv_peer_mem to be loaded. */
extern const char nvpm_version[];

#endif
