# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Whether those who are not root may use RDMA: the rights of the device files, and
# how much memory the jobs of a service may lock, which GPU memory counts for.

access_facts() {
	rights_fact
	for daemon in slurmd kubelet containerd; do
		limit_fact "$daemon"
	done
}

rights_fact() {
	set -- "$root"/sys/class/infiniband/*
	[ -e "$1" ] || return 0
	set -- "$root"/dev/infiniband/uverbs*
	if [ ! -e "$1" ]; then
		fact access /dev/infiniband bad "there is no uverbs device" \
			"modprobe ib_uverbs; in a container, give it the devices (--device /dev/infiniband)."
		return
	fi
	closed=$(find "$root/dev/infiniband" \( -name 'uverbs*' -o -name rdma_cm \) ! -perm -666 -printf '%f has mode 0%m, ')
	if [ -z "$closed" ]; then
		fact access /dev/infiniband good "open to all users"
	else
		fact access /dev/infiniband warn "not open to all users: ${closed%, }" \
			"Install the udev rules of rdma-core, which give 0666; until the next boot: chmod 0666 /dev/infiniband/uverbs* /dev/infiniband/rdma_cm"
	fi
}

# limit_fact DAEMON: of the one that runs, or else what its unit says.
limit_fact() {
	limit=
	file=$(grep -lsx "$1" "$root"/proc/[0-9]*/comm | head -n 1)
	if [ -n "$file" ]; then
		while read -r a b c soft _; do
			[ "$a $b $c" != "Max locked memory" ] || limit=$soft
		done 2>/dev/null <"${file%/comm}/limits"
		[ -n "$limit" ] || return 0
	elif unit_of "$1"; then
		limit="${limit:-the default of systemd (DefaultLimitMEMLOCK)}, by its unit"
	else
		return 0
	fi
	case $1:$limit in
	kubelet:*) fact access "memory lock $1" none "$limit; containers have that of their runtime" ;;
	*:unlimited* | *:infinity*) fact access "memory lock $1" good "$limit" ;;
	*)
		case $limit in *[!0-9]*) ;; *) limit="$limit bytes" ;; esac
		fact access "memory lock $1" warn "$limit: its jobs cannot register more" \
			"systemctl edit $1, write [Service] and LimitMEMLOCK=infinity, then systemctl restart $1."
		;;
	esac
}

# unit_of DAEMON: leaves in $limit what its unit says last; fails without a unit.
unit_of() {
	set --
	for directory in /lib /usr/lib /etc; do
		for file in "$root$directory/systemd/system/$daemon.service" "$root$directory/systemd/system/$daemon.service.d"/*.conf; do
			[ ! -r "$file" ] || set -- "$@" "$file"
		done
	done
	[ $# -gt 0 ] || return 1
	limit=$(sed -n 's/^[[:space:]]*LimitMEMLOCK[[:space:]]*=[[:space:]]*//p' "$@" | tail -n 1)
	limit=${limit##*:}
}
