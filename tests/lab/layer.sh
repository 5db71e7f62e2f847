# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Layers: directories that overlayfs stacks to one root file system, each the
# result of one script run inside the layers below it.
#
# A layer's name ends in a hash of everything it was made from (its script,
# its inputs, the layer below it). A directory appears under that name only
# when it is complete, by a rename; so what is there can be trusted, what is
# not is made, and an interrupted build leaves nothing that anyone would use.

# hash_of PATH...: a hash of the files' names, contents, modes and links; directories whole.
hash_of() {
	local path
	for path; do
		(cd "$(dirname "$path")" &&
			find "$(basename "$path")" -not -path '*/target/*' -not -type d -printf '%m %y %l %p\n' | LC_ALL=C sort &&
			find "$(basename "$path")" -not -path '*/target/*' -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum)
	done | sha256sum | cut -c 1-12
}

# named NAME WORD...: NAME with a hash of the words that are given and read.
named() { printf '%s-%s\n' "$1" "$({ printf '%s\n' "${@:2}" && cat; } | sha256sum | cut -c 1-12)"; }

# unless_there FULLNAME COMMAND...: has COMMAND make the layer, unless it is there. Where
# two want the same one, one makes it, and the other waits and looks again.
unless_there() {
	local building
	! use_layer "$1" || return 0
	exec {building}>"$LAB_CACHE/tmp/$1.building"
	flock "$building"
	use_layer "$1" || "${@:2}"
	rm -f "$LAB_CACHE/tmp/$1.building"
	exec {building}>&-
}

# in_layers STACK UPPER COMMAND...: runs COMMAND in a chroot made of the layers
# in STACK (topmost first, colon-separated) with UPPER's root/ on top to write
# to. Directories to share are in the array `binds`, as FROM:TO[:ro].
in_layers() {
	local stack=$1 upper=$2 lower='' layer
	shift 2
	mkdir -p "$upper/root" "$upper/work" "$upper/mnt"
	for layer in ${stack//:/ }; do
		lower+=${lower:+:}layers/$layer/root
	done
	# The mounts live in a namespace of their own and die with it; so do the
	# processes, whatever happens to this script.
	# shellcheck disable=SC2016 # for the shell inside
	(cd "$LAB_CACHE" && setpriv --pdeathsig KILL \
		unshare --mount --pid --fork --kill-child --propagation private \
		bash -euc '
		upper=$1 lower=$2 binds=$3
		shift 3
		mount -t overlay -o "lowerdir=$lower,upperdir=$upper/root,workdir=$upper/work,redirect_dir=off,metacopy=off" lab "$upper/mnt"
		mount -t proc proc "$upper/mnt/proc"
		mount --rbind /dev "$upper/mnt/dev"
		mount -t tmpfs tmpfs "$upper/mnt/run"
		mount -t tmpfs tmpfs "$upper/mnt/tmp"
		for bind in $binds; do
			IFS=: read -r from to mode <<<"$bind"
			if [ -d "$from" ]; then mkdir -p "$upper/mnt$to"; else : >>"$upper/mnt$to"; fi
			mount --bind "$from" "$upper/mnt$to"
			[ -z "$mode" ] || mount -o "remount,bind,$mode" "$upper/mnt$to"
		done
		[ ! -e /etc/resolv.conf ] || cat /etc/resolv.conf >"$upper/mnt/run/resolv.conf"
		exec env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
			DEBIAN_FRONTEND=noninteractive chroot "$upper/mnt" "$@"
		' in_layers "$upper" "$lower" "${binds[*]-}" "$@")
}

# use_layer FULLNAME: whether the layer is there; notes that it was used.
use_layer() {
	[ -d "$LAB_CACHE/layers/$1" ] && touch "$LAB_CACHE/layers/$1"
}

# make_layer NAME STACK TEXT FULLNAME INPUT...: see layer.
make_layer() {
	local name=$1 stack=$2 full=$4 dir input hint='' log=$LAB_CACHE/log/$1${kver:+-$kver}.log
	say "$name" "$3"
	shift 4
	new_dir "$name"
	dir=$reply
	mkdir "$dir/in"
	for input; do cp -a "$input" "$dir/in/"; done
	cp "$lab/build/$name.sh" "$dir/in/build.sh"
	local binds=("$dir/in:/in:ro") started=$SECONDS
	if [ -n "${layer_network-}" ]; then
		write_sources "$dir" "$base_release"
		binds+=("$dir/sources.list:/etc/apt/sources.list:ro")
		hint=" If the archive has dropped what this wants, tests/run update looks again."
	fi
	logged "$log" in_layers "$stack" "$dir" bash -eu /in/build.sh "${layer_args[@]}" || {
		! grep -q 'No space left on device' "$log" ||
			hint=" There is no space left: make room in $LAB_CACHE, in memory (/tmp of a build is there), or set LAB_CACHE=DIR."
		die "building the layer '$name' failed; nothing of it is kept.$hint"
	}
	finish_layer "$dir" "$full"
	say "$name" "done in $((SECONDS - started)) s"
}

# layer NAME STACK TEXT INPUT...: makes the layer NAME on top of STACK, unless
# it is there, by running build/NAME.sh inside it, with the directory /in
# holding the INPUTs. Leaves the layer's full name in $reply. Words in the
# array `layer_args` are given to the script and are part of the hash. A script
# that fetches packages gets the mirror of today where `layer_network` is set.
layer() {
	local full
	full=$(named "$1" "$2" "${layer_args[@]-}" "$(hash_of "$lab/build/$1.sh" "${@:4}")" \
		< <(declare -f make_layer in_layers finish_layer))
	unless_there "$full" make_layer "${@:1:3}" "$full" "${@:4}"
	reply=$full
}

# finish_layer DIR FULLNAME: the finished root/ of DIR becomes a layer.
finish_layer() {
	mkdir -p "$1/layer"
	mv "$1/root" "$1/layer/root"
	rm -rf "$1/layer/root/in"
	sync -f "$1/layer"
	mv -T "$1/layer" "$LAB_CACHE/layers/$2"
	rm -rf "$1"
}
