# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Reads /etc/infiniband/nv_peer_mem.conf.

conf=/etc/infiniband/nv_peer_mem.conf

# conf_value NAME: what the file says; nothing if it does not.
conf_value() {
	sed -n 's/^[[:space:]]*'"$1"'=["'\'']\{0,1\}\([[:alnum:]]*\).*/\1/p' \
		"${NVPM_SYSROOT-}$conf" 2>/dev/null | tail -n 1
}

# marker_wanted: whether the module that only has a name is to be loaded, too.
marker_wanted() {
	case $(conf_value MARKER) in
	[Yy][Ee][Ss]) return 0 ;;
	esac
	return 1
}

# wanted_on_boot: whether the module is to be loaded at boot; without a word, yes.
wanted_on_boot() {
	value=$(conf_value ONBOOT)
	case $value in
	[Yy][Ee][Ss] | "") ;;
	[Nn][Oo]) return 1 ;;
	*) echo "$conf: ONBOOT=$value is neither yes nor no; assuming yes." >&2 ;;
	esac
}
