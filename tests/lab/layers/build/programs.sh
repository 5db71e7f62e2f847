# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs other projects' programs for RDMA with CUDA memory: Debian's packages, and perftest from
# Debian's source, because Debian's package lacks CUDA.
set -euo pipefail
sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >/etc/apt/sources.list.d/source.list
apt-get update
apt-get install --yes --no-install-recommends libfabric-dev libibumad-dev libpci-dev python3-pyverbs

# Only the tar is used, which contains a finished configure. Debian's own programs are installed as well,
# so these get a suffix.
mkdir /tmp/build
cd /tmp/build
apt-get source --tar-only --download-only perftest
tar -xf perftest_*.orig.tar.gz --strip-components=1
./configure CC=gcc-14 CUDA_H_PATH=/usr/local/cuda/include/cuda.h
make -j2 ib_write_bw ib_read_lat ib_send_lat
for program in ib_write_bw ib_read_lat ib_send_lat; do
	install -D -m 755 "$program" "/usr/local/bin/$program-cuda"
done
rm -rf /var/cache/apt/archives/*.deb /etc/apt/sources.list.d/source.list
