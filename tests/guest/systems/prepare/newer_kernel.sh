# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# A newer kernel is installed while the older one runs. Its files lie in layers
# below this one; dpkg hears of them here, and configures its packages, whose
# maintainer scripts run the hooks in /etc/kernel.
release=${newer_kver%-*}
awk -v RS= -v ORS='\n\n' -v release="$release" 'index($2, release)' /in/status |
	sed 's/^Status: .*/Status: install ok unpacked/' >/tmp/paragraphs
grep "^Package: linux-image-$newer_kver\$" /tmp/paragraphs
grep "^Package: linux-headers-$newer_kver\$" /tmp/paragraphs
{
	echo
	cat /tmp/paragraphs
} >>/var/lib/dpkg/status
# The lab has its own initramfs.
export INITRD=No
dpkg --configure --pending 2>&1 | tee /root/kernel.log
dpkg -s "linux-image-$newer_kver" | grep '^Status: install ok installed$'
