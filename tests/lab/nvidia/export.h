/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How the simulated driver exports its functions. The open flavour does as the real
 * one. A closed module may not use what the simulation itself needs of the kernel:
 * there the simulation is a module of its own, nvidia_core.ko, with these names, and
 * the closed nvidia.ko (closed.c) hands its calls on to them.
 */
#ifndef SIM_EXPORT_H
#define SIM_EXPORT_H

#include <linux/export.h>

#ifdef SIM_CLOSED
#define SIM_EXPORT(function) EXPORT_SYMBOL(function)

#define nvidia_p2p_get_pages		lab_p2p_get_pages
#define nvidia_p2p_put_pages		lab_p2p_put_pages
#define nvidia_p2p_get_pages_persistent	lab_p2p_get_pages_persistent
#define nvidia_p2p_put_pages_persistent	lab_p2p_put_pages_persistent
#define nvidia_p2p_cap_persistent_pages	lab_p2p_cap_persistent_pages
#define nvidia_p2p_dma_map_pages	lab_p2p_dma_map_pages
#define nvidia_p2p_dma_unmap_pages	lab_p2p_dma_unmap_pages
#define nvidia_p2p_free_page_table	lab_p2p_free_page_table
#define nvidia_p2p_free_dma_mapping	lab_p2p_free_dma_mapping
#define nvidia_p2p_init_mapping		lab_p2p_init_mapping
#define nvidia_p2p_destroy_mapping	lab_p2p_destroy_mapping
#define nvidia_p2p_register_rsync_driver	lab_p2p_register_rsync_driver
#define nvidia_p2p_unregister_rsync_driver	lab_p2p_unregister_rsync_driver
#define nvidia_p2p_get_rsync_registers	lab_p2p_get_rsync_registers
#define nvidia_p2p_put_rsync_registers	lab_p2p_put_rsync_registers
#else
#define SIM_EXPORT(function) EXPORT_SYMBOL_GPL(function)
#endif

#endif
