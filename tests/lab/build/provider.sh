# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Builds rdma-core's user-space driver for rxe from Debian's source, with the operation that
# registers a dma-buf, which the original lacks. A file in /etc/libibverbs.d selects this driver;
# all other parts of rdma-core stay Debian's.
set -euo pipefail
sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >/etc/apt/sources.list.d/source.list
apt-get update
mkdir /tmp/build
cd /tmp/build
apt-get source --tar-only --download-only rdma-core
tar -xf rdma-core_*.orig.tar.* --strip-components=1

# The headers that the build system of rdma-core would make, as far as this driver needs them.
mkdir -p include/infiniband include/kernel-abi
ln -s "$PWD"/libibverbs/*.h include/infiniband/
ln -s "$PWD/kernel-headers/rdma" "$PWD/ccan" "$PWD/util" include/
for header in ib_user_verbs rdma_user_rxe; do
	python3 buildlib/make_abi_structs.py "kernel-headers/rdma/$header.h" "include/kernel-abi/$header.h"
done
abi=$(sed -n 's/^set(IBVERBS_PABI_VERSION "\(.*\)")/\1/p' CMakeLists.txt)
cat >include/config.h <<CONFIG
#define HAVE_STATEMENT_EXPR 1
#define HAVE_BUILTIN_TYPES_COMPATIBLE_P 1
#define HAVE_TYPEOF 1
#define IBVERBS_PABI_VERSION $abi
#define SIZEOF_LONG 8
#define VERBS_IOCTL_ONLY 0
#define VERBS_WRITE_ONLY 0
CONFIG

cat >operation.c <<'OPERATION'
static struct ibv_mr *lab_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					uint64_t iova, int fd, int access)
{
	struct verbs_mr *vmr = calloc(1, sizeof(*vmr));

	if (vmr && !ibv_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, vmr, NULL))
		return &vmr->ibv_mr;
	free(vmr);
	return NULL;
}

OPERATION
sed -i -e '/^static int rxe_dereg_mr(/{
	e cat operation.c
}' -e 's/^\t\.reg_mr = rxe_reg_mr,$/&\n\t.reg_dmabuf_mr = lab_reg_dmabuf_mr,/' providers/rxe/rxe.c
[ "$(grep -c lab_reg_dmabuf_mr providers/rxe/rxe.c)" = 2 ]

mkdir -p /usr/local/lib/lab
gcc-14 -std=gnu11 -D_GNU_SOURCE -O2 -shared -fPIC -Iinclude -o "/usr/local/lib/lab/librxe-rdmav$abi.so" \
	providers/rxe/rxe.c -libverbs
rm -rf /tmp/build /etc/apt/sources.list.d/source.list /var/lib/apt/lists/*_Sources*
