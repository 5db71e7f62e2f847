# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs the release into the image, below /image. The layer below has the packages of the image.
set -euo pipefail
release=/tmp/release
mkdir "$release"
cp -a /in/. "$release/"
rm -rf "$release/ready" "$release/build/prebuilt"
cp -a /in/ready "$release/build/prebuilt"
mkdir "$release/nvpm"
cp -a /opt/nvpm-programs "$release/nvpm/prebuilt"
# A release has the assembly for both processors, and a guest needs its own.
for arch in x86_64 aarch64; do
	[ -e "$release/build/prebuilt/$arch.S" ] || echo "not made here" >"$release/build/prebuilt/$arch.S"
done
sh "$release/container/install-release" "$release" /image
# Scenarios start the pod as its manifests say.
mkdir -p /operators
cp -a "$release"/container/*.yaml /operators/
