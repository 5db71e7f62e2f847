/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * mlx5_ib with peer memory: the functions that `adapt_mlx5` makes mr.c call.
 */
#ifndef MLX5_PEER_H
#define MLX5_PEER_H

#include <linux/types.h>

#include "peer_driver.h"

struct ib_device;
struct ib_mr;
struct ib_umem;
struct mlx5_ib_mr;

/* mr.c calls these two functions instead of those that pin and unpin the memory of an MR. */
struct ib_umem *mlx5_peer_umem_get(struct ib_device *device, u64 start, u64 length, int access);
void mlx5_peer_umem_release(struct ib_umem *umem);

/* Tells whether a UMR fills the key for this memory, if the device can do so. */
bool mlx5_peer_by_umr(struct ib_umem *umem);

/* Tells whether the MR has memory of a peer. */
bool mlx5_peer_mr(struct mlx5_ib_mr *mr);

/* Makes the last step of a registration. Returns the MR, or an error, after which no MR is left. */
struct ib_mr *mlx5_peer_activate(struct mlx5_ib_mr *mr);

/* Ends an MR whose registration has failed. */
void mlx5_peer_abandon(struct mlx5_ib_mr *mr);

/*
 * Makes the first step of a deregistration. After a failure, the device may still use the memory,
 * and the MR stays as it is.
 */
int mlx5_peer_dereg(struct mlx5_ib_mr *mr);

#endif
