# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Lists the modules of all layers below, because the layer mlx5 is made without the layers of the
# driver and of the module.
set -euo pipefail
kver=$1
depmod "$kver"
[ "$(modinfo -k "$kver" -n mlx5_ib)" = "/lib/modules/$kver/updates/mlx5_ib.ko" ]
