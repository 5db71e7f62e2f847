# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The packages are installed on Debian, and dkms builds the module.
dpkg -i /in/packages/nvidia-peer-memory_*.deb
dpkg -i /in/packages/nvidia-peer-memory-dkms_*.deb
cp /in/packages/nvidia-peer-memory-dkms_*.deb /root/installed.deb
# `upgrade` installs the service's package again, and then a package with a later version.
cp /in/packages/nvidia-peer-memory_*.deb /root/service.deb
dpkg-deb -R /root/service.deb /tmp/service
sed -i 's/^Version: .*/Version: 99.0.0-1/' /tmp/service/DEBIAN/control
dpkg-deb --root-owner-group -b /tmp/service /root/newer_service.deb
modinfo -k "$kver" nv_peer_mem
