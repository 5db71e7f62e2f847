# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# A newer kernel is installed while the older kernel runs. The files of the newer kernel are already
# in layers below this layer. This script gives dpkg the packages' entries and configures the
# packages, so that their maintainer scripts run the hooks in /etc/kernel.
release=${newer_kver%-*}
awk -v RS= -v ORS='\n\n' -v release="$release" 'index($2, release)' /in/status |
	sed 's/^Status: .*/Status: install ok unpacked/' >/tmp/paragraphs
grep "^Package: linux-image-$newer_kver\$" /tmp/paragraphs
grep "^Package: linux-headers-$newer_kver\$" /tmp/paragraphs
{
	echo
	cat /tmp/paragraphs
} >>/var/lib/dpkg/status
# The lab has its own initramfs, so the hooks need not make an initramfs.
export INITRD=No
dpkg --configure --pending 2>&1 | tee /root/kernel.log
dpkg -s "linux-image-$newer_kver" | grep '^Status: install ok installed$'
