#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: under systemd updating or reinstalling the deb stops no service and unloads nothing
# Test: stock
. /checkout/tests/packages/lib.sh

# As on a machine that systemd has started; what would be told to it is written down.
mkdir -p /run/systemd/system
calls=/tmp/calls
for name in systemctl deb-systemd-invoke invoke-rc.d rmmod modprobe; do
	cat >"/usr/local/bin/$name" <<-STUB
		#!/bin/sh
		echo "$name \$*" >>$calls
	STUB
	chmod +x "/usr/local/bin/$name"
done

# kept TEXT DEB: nothing was told but to read its files again.
kept() {
	: >"$calls"
	check "$1" saying dpkg -i "$2"
	cat "$calls"
	check "$1: nothing was stopped or loaded" fails grep -E ' (stop|start|restart|try-restart|force-reload)( |$)|^(rmmod|modprobe)' "$calls"
}

kept "installed" /packages/old/nvidia-peer-memory_*_all.deb
kept "updated" /packages/nvidia-peer-memory_*_all.deb
kept "installed again" /packages/nvidia-peer-memory_*_all.deb

# That stopping is seen at all.
dpkg-deb -R /packages/nvidia-peer-memory_*_all.deb /tmp/stops
cat >/tmp/stops/DEBIAN/preinst <<'PREINST'
#!/bin/sh
[ "$1" != upgrade ] || deb-systemd-invoke stop nv_peer_mem.service
PREINST
chmod 755 /tmp/stops/DEBIAN/preinst
dpkg-deb -b /tmp/stops /tmp/stops.deb
: >"$calls"
check "a package whose preinst stops the service" saying dpkg -i /tmp/stops.deb
check "is one that is noticed" grep -qx 'deb-systemd-invoke stop nv_peer_mem.service' "$calls"
