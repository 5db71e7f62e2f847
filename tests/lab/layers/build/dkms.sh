# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Unpacks the program dkms of several releases of Debian into /opt/dkms/RELEASE.
set -euo pipefail
apt-get update
mkdir /tmp/debs /opt/dkms
cd /tmp/debs
for suite in bullseye bookworm trixie; do
	apt-get download "dkms/$suite"
	dpkg-deb -x dkms_*.deb "/opt/dkms/$suite"
	rm dkms_*.deb
done
