// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Adds peer memory to mlx5_ib, so that the memory of an MR can be taken away.
 *
 * A revocation sends a UMR, which takes the MR's key away from the user. After the device has
 * answered, the device does no DMA to the memory any more.
 */
#include <linux/module.h>

#include "mlx5_ib.h"
#include "umr.h"

static bool peer_umr = true;
module_param(peer_umr, bool, 0644);
MODULE_PARM_DESC(peer_umr, "whether keys for peer memory are filled by UMR, not by CREATE_MKEY");

static int mlx5_peer_revoke(struct mlx5_ib_mr *mr)
{
	int err = mlx5r_umr_revoke_mr(mr);

	if (err)
		mlx5_ib_warn(to_mdev(mr->ibmr.device),
			     "mkey %#x was not revoked (%d): the device may still use the peer memory\n",
			     mr->mmkey.key, err);
	return err;
}

/* A failure cannot be returned: the owner takes the memory away in any case. */
static void mlx5_peer_invalidate(struct ib_umem *umem, void *priv)
{
	mlx5_peer_revoke(priv);
}

struct ib_umem *mlx5_peer_umem_get(struct ib_device *device, u64 start, u64 length, int access)
{
	return ib_umem_get_peer(device, start, length, access, IB_PEER_MEM_INVAL_SUPP);
}

void mlx5_peer_umem_release(struct ib_umem *umem)
{
	ib_umem_stop_invalidation_notifier(umem);
	ib_umem_release(umem);
}

bool mlx5_peer_by_umr(struct ib_umem *umem)
{
	return READ_ONCE(peer_umr) || !ib_umem_is_peer(umem);
}

bool mlx5_peer_mr(struct mlx5_ib_mr *mr)
{
	return mr->umem && ib_umem_is_peer(mr->umem);
}

struct ib_mr *mlx5_peer_activate(struct mlx5_ib_mr *mr)
{
	int err;

	if (!mlx5_peer_mr(mr))
		return &mr->ibmr;
	err = ib_umem_peer_driver_step(mr->umem);
	if (!err)
		err = ib_umem_activate_invalidation_notifier(mr->umem, mlx5_peer_invalidate, mr);
	if (!err)
		return &mr->ibmr;
	mlx5_peer_abandon(mr);
	return ERR_PTR(err);
}

void mlx5_peer_abandon(struct mlx5_ib_mr *mr)
{
	/*
	 * If the deregistration fails, the MR is lost. But its umem must not stay locked, because
	 * an invalidation would wait for the end of this registration.
	 */
	if (mlx5_ib_dereg_mr(&mr->ibmr, NULL))
		ib_umem_stop_invalidation_notifier(mr->umem);
}

int mlx5_peer_dereg(struct mlx5_ib_mr *mr)
{
	int err;

	if (!mlx5_peer_mr(mr))
		return 0;
	err = mlx5_peer_revoke(mr);
	if (!err)
		ib_umem_stop_invalidation_notifier(mr->umem);
	return err;
}
