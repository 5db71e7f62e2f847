# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the tests for hardware from an unpacked release, which build the module and change no file of the system
# Prepared: release
kept=/var/lib/nv_peer_mem-hardware

# files: prints each file of the system with its owner, mode, size and times, and the checksums of
# those that a test could change: settings, modules, units and the release. A directory's own times
# change while a run has its directory in it. Left out are the run's own directory, the lab's, and
# what daemons write.
files() {
	find / -xdev \( -path "$kept" -o -path /var/lib/lab -o -path /var/lib/systemd -o -path /var/log -o -path /tmp \
		-o -path /run -o -path /dev -o -path /proc -o -path /sys \) -prune -o \
		-type d -printf '%p %M %U %G\n' -o -printf '%p %M %U %G %s %T@ %C@\n' | sort
	find /etc "/lib/modules/$(uname -r)/" /usr/lib/systemd /usr/lib/udev "$1" -type f -not -path '*/kernel/*' \
		-exec sha256sum {} + | sort -k 2
}

boot_1() {
	local release rc=0
	release=$(echo /opt/nvidia-peer-memory-*)
	check "the boot has loaded no module" eval '! loaded'
	files "$release" >/run/before
	lsmod | awk '{ print $1 }' | sort >/run/modules
	sh "$release/tests/hardware/run" --no-measure || rc=$?
	equal "exit code" 0 "$rc"
	cat "$kept"/*/build.log
	check "every step that was tried held" grep -qE '^nv_peer_mem on hardware: ([0-9]+) of \1 steps held$' "$kept"/*/page.txt
	check "the module was built" grep -q '"the module is built for this kernel"' "$kept"/*/journal
	files "$release" >/run/after
	equal "no file of the system is changed" '' "$(diff /run/before /run/after | head -n 20)"
	lsmod | awk '$1 != "nv_peer_mem_callback" { print $1 }' | sort >/run/modules_after
	equal "the modules are as before" '' "$(diff /run/modules /run/modules_after)"
	check "files were compared" test "$(wc -l </run/before)" -gt 10000
}
