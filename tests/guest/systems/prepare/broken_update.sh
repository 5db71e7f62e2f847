# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# An update was tried whose module does not compile. What dpkg said is kept.
dpkg-deb -R /in/packages/nvidia-peer-memory-dkms_*.deb /tmp/broken
old=$(dpkg-deb -f /in/packages/nvidia-peer-memory-dkms_*.deb Version)
old=${old%-*} new=99.0.0
mv "/tmp/broken/usr/src/nvidia-peer-memory-$old" "/tmp/broken/usr/src/nvidia-peer-memory-$new"
sed -i "s/${old//./\\.}/$new/g" /tmp/broken/DEBIAN/* "/tmp/broken/usr/src/nvidia-peer-memory-$new/dkms.conf"
echo 'this does not compile' >>"/tmp/broken/usr/src/nvidia-peer-memory-$new/src/shim.c"
rm /tmp/broken/DEBIAN/md5sums
dpkg-deb --root-owner-group -b /tmp/broken /tmp/broken.deb
rc=0
dpkg -i /tmp/broken.deb >/root/update.log 2>&1 || rc=$?
printf 'dpkg ended with %s\n' "$rc" >>/root/update.log
cat /root/update.log
