# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs Debian's programs that make, check and install packages.
set -euo pipefail

# From here on packages are installed with documentation and man pages, as on other machines.
sed -i '/^path-exclude/d' /etc/dpkg/dpkg.cfg.d/*
apt-get update
apt-get install -y --no-install-recommends build-essential debhelper dkms fakeroot git \
	lintian lld locales man-db mandoc rpm rpmlint
# In this locale the capital letter of i is another letter than I.
localedef -i tr_TR -f UTF-8 tr_TR.UTF-8
apt-get clean
rm -rf /var/log/*
