# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: installed with rpm, for one kernel; booted; unloaded; erased
# All: the same with rpm
# Prepared: rpm

boot_1() {
	check "the boot has loaded the module" loaded
	equal "it is the one of the package" 0 "$(rpm -qf "$(modinfo -n nv_peer_mem)" >/dev/null; echo $?)"
	all_agree "booted" active 0
	serves
	erase
}

erase() {
	mapfile -t packages < <(rpm -qa 'nvidia_peer_memory*')
	hold_memory
	run rpm -e "${packages[@]}"
	check "erasing is refused while a program has memory registered" test "$code" != 0
	check "and says so" grep -q 'in use' /tmp/said
	check "the program goes on, and ends well" ended_well
	equal "both packages stay" "${#packages[@]}" "$(rpm -qa 'nvidia_peer_memory*' | wc -l)"
	run rpm -e "${packages[@]}"
	equal "then erasing works" 0 "$code"
	check "the module is unloaded" eval '! loaded'
	nothing_left
}
