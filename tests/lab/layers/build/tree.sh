# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Makes /usr/src/matrix, a kernel tree to compile against: the source of a kernel that Debian builds
# without CONFIG_RUST, configured with CONFIG_RUST.
set -euo pipefail
version=$1 series=$2 suite=$3 compiler=$4

apt-get update
apt-get install -y --no-install-recommends -t "$suite" "linux-source-$series=$version" "$compiler"

source=/usr/src/linux-lab-$series
mkdir "$source" /usr/src/matrix
# The code of drivers is not compiled, but their Kconfig and Makefiles are read.
tar -xJf "/usr/src/linux-source-$series.tar.xz" -C "$source" --strip-components=1 --anchored --wildcards \
	--exclude="linux-source-$series/drivers/*.c" --exclude="linux-source-$series/drivers/gpu/drm/amd/include"
build() { make -C "$source" O=/usr/src/matrix -j"$(nproc)" "$@"; }
build x86_64_defconfig
"$source/scripts/config" --file /usr/src/matrix/.config -e RUST -d MODVERSIONS -d DEBUG_INFO_BTF \
	-m INFINIBAND -e INFINIBAND_USER_ACCESS
build olddefconfig
grep '^CONFIG_RUST=y' /usr/src/matrix/.config
build prepare modules_prepare
apt-get purge -y "linux-source-$series"
apt-get clean
rm -rf /var/log/*
