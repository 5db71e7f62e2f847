# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Builds libibverbs from Debian's source as Ubuntu links it, with -Bsymbolic-functions, so that its
# functions call each other without the dynamic linker. All other parts of rdma-core stay Debian's.
set -euo pipefail
sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >/etc/apt/sources.list.d/source.list
apt-get update
before=$(apt-mark showmanual)
tools=(cmake libnl-3-dev libnl-route-3-dev libudev-dev ninja-build pkgconf)
apt-get install -y --no-install-recommends "${tools[@]}"
mkdir /tmp/build
cd /tmp/build
apt-get source --tar-only --download-only rdma-core
tar -xf rdma-core_*.orig.tar.* --strip-components=1
cmake -S . -B made -G Ninja -DCMAKE_C_COMPILER=gcc-14 -DCMAKE_BUILD_TYPE=Release \
	-DNO_MAN_PAGES=1 -DNO_PYVERBS=1 -DENABLE_RESOLVE_NEIGH=0 \
	-DCMAKE_INSTALL_FULL_LIBDIR=/usr/lib/x86_64-linux-gnu -DCMAKE_INSTALL_PREFIX=/usr \
	-DCMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu -DCMAKE_INSTALL_SYSCONFDIR=/etc \
	-DCMAKE_SHARED_LINKER_FLAGS=-Wl,-Bsymbolic-functions
ninja -C made lib/libibverbs.so
mkdir -p /usr/local/lib/lab/symbolic
cp "$(readlink -f made/lib/libibverbs.so.1)" /usr/local/lib/lab/symbolic/libibverbs.so.1
# Calls of its own functions do not go through the table of symbols.
if readelf --relocs --wide /usr/local/lib/lab/symbolic/libibverbs.so.1 | grep ibv_reg_mr_iova2; then exit 1; fi
apt-mark auto "${tools[@]}" >/dev/null
# shellcheck disable=SC2086 # These are words.
apt-mark manual $before >/dev/null
apt-get autoremove -y --purge
rm -rf /tmp/build /etc/apt/sources.list.d/source.list /var/lib/apt/lists/*_Sources* /var/cache/apt/archives/*.deb
