# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the tests for hardware from an unpacked release, which build the module and change no file of the system
# Prepared: release
kept=/var/lib/nv_peer_mem-hardware

# sums DIRECTORY...: prints the checksums of all files that a test could have changed: settings, modules
# beside the kernel's own, and the release.
sums() { find /etc "/lib/modules/$(uname -r)/" "$@" -type f -not -path '*/kernel/*' -exec sha256sum {} + | sort -k 2; }

# changed FILE: prints all files and directories that were made, changed or removed since FILE was made.
# Left out are the run's own directory, which is made in /var/lib, the lab's (also /mnt), what daemons
# write, and what no boot keeps.
changed() {
	local top
	for top in /*; do
		case $top in
		/dev | /proc | /sys | /run | /tmp | /lab | /mnt) continue ;;
		esac
		say "looks at $top" >&2
		find "$top" -xdev \( -path "$kept" -o -path '/var/lib/lab*' -o -path /var/lib/systemd -o -path /var/log -o -path /var/tmp \) \
			-prune -o -not -path /var/lib -cnewer "$1" -print
	done
}

# with_progress COMMAND...: runs COMMAND, and tells the host of each step. A guest that tells the host
# nothing for minutes counts as hung.
with_progress() {
	"$@" 2>&1 | while read -r line; do
		case $line in
		'['* | *'still going on'*) say "$line" ;;
		*) printf '%s\n' "$line" ;;
		esac
	done
	return "${PIPESTATUS[0]}"
}

boot_1() {
	local release rc=0
	release=$(echo /opt/nvidia-peer-memory-*)
	check "the boot has loaded no module" eval '! loaded'
	sums "$release" >/run/before
	check "files were compared" test "$(wc -l </run/before)" -gt 500
	lsmod | awk '{ print $1 }' | sort >/run/modules
	touch /run/begun
	with_progress sh "$release/tests/hardware/run" --no-measure || rc=$?
	equal "exit code" 0 "$rc"
	check "every step that was tried held" grep -qE '^nv_peer_mem on hardware: ([0-9]+) of \1 steps held$' "$kept"/*/page.txt
	check "the module was built" grep -q '"the module is built for this kernel"' "$kept"/*/journal
	equal "no file has other contents" '' "$(diff /run/before <(sums "$release") | head -n 20)"
	touch /opt/lab-made
	equal "no file of the system is changed" "$(printf '/opt\n/opt/lab-made')" "$(changed /run/begun | sort)"
	lsmod | awk '$1 != "nv_peer_mem_callback" { print $1 }' | sort >/run/modules_after
	equal "the modules are as before" '' "$(diff /run/modules /run/modules_after)"
}
