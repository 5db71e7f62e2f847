# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Reads OFA_KERNEL and NV_SRC from /etc/nv_peer_mem-build.conf. Builds by dkms need this file,
# because dkms does not pass the user's environment on. A variable of the environment overrides the
# file.

settings_file=/etc/nv_peer_mem-build.conf
carriage_return=$(printf '\r')

read_settings() {
	core_from='' driver_from='' file_core='' file_driver='' number=0
	[ -e "$settings_file" ] || return 0
	while IFS= read -r line || [ "$line" ]; do
		number=$((number + 1))
		case $line in
		'' | '#'*) ;;
		*"$carriage_return") die "$settings_file, line $number: the line ends in a carriage return, as on Windows. Remove it: sed -i 's/\\r\$//' $settings_file" ;;
		*[[:space:]\"\']*) malformed ;;
		OFA_KERNEL=/*) file_core=${line#*=} ;;
		NV_SRC=/*) file_driver=${line#*=} ;;
		*) malformed ;;
		esac
	done <"$settings_file" || die "$settings_file cannot be read: run this as root, or chmod 644 $settings_file."
	[ "${OFA_KERNEL:-}" ] || OFA_KERNEL=$file_core core_from=" (of $settings_file)"
	[ "${NV_SRC:-}" ] || NV_SRC=$file_driver driver_from=" (of $settings_file)"
}

malformed() {
	die "$settings_file, line $number: '$line' is neither a comment nor OFA_KERNEL=DIRECTORY nor NV_SRC=DIRECTORY (an absolute path without blanks or quotes)."
}
