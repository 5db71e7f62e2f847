# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck disable=SC2016 # commands for the shell inside the layers
#
# The packages: made, checked, and installed in the lab's root file system.

# What a release is made of. Tests are in it, but make no difference here.
package_sources=("$top/Kbuild" "$top/Makefile" "$top/dkms.conf" "$top/nv_peer_mem.conf" "$top/build_release.sh"
	"$top/README.md" "$top/LICENSE" "$top/LICENSES" "$top/.gitignore"
	"$top/src" "$top/init.d" "$top/docs" "$top/debian" "$top/rpm")

# packages_layer: the guest's stack without module and service, with what packages are
# made with and the packages themselves, in $stack. $packages is the layer that
# has them, in /packages and, of an older version, in /packages/old.
packages_layer() {
	local kernel
	guest_layers stock
	kernel=$(tr : '\n' <<<"$stack" | grep -e '^kernel-' -e '^base-' | paste -sd:)
	stack=$(tr : '\n' <<<"$stack" | grep -v -e '^module-' -e '^service-' | paste -sd:)
	layer_args=()
	# On top of the kernel's packages: dpkg has one list of what is installed.
	layer_network=yes layer packaging "$kernel" "Debian's tools for packages (a minute)"
	stack=$reply:$stack
	layer_args=("$kver")
	layer packages "$stack" "packages, deb and rpm" "${package_sources[@]}"
	packages=$reply
	stack=$packages:$stack
}

# key_package NAME: of all that its result depends on.
key_package() {
	packages_layer
	key_of "$1" "$stack" "$(hash_of "$top/tests/packages")"
}

# The tests are in tests/packages; each begins with what it shows.
package_names() {
	grep -l '^# Shows: ' "$top"/tests/packages/*.sh | sed 's,.*/,,; s,\.sh$,,'
}

# run_package NAME: one line when it passes; when it does not, everything seen.
run_package() {
	local name=$1 started log scratch rc=0
	log=$LAB_CACHE/log/package-$name.log
	packages_layer
	started=$SECONDS
	new_dir tmp "package-$name"
	scratch=$reply
	local binds=("$top:/checkout:ro")
	in_layers "$stack" "$scratch" "/checkout/tests/packages/$name.sh" "$kver" >"$log" 2>&1 || rc=$?
	rm -rf "$scratch"
	if [ "$rc" = 0 ] && grep -q '^ok ' "$log"; then
		say "package $name" "passed, $(grep -c '^ok ' "$log") checks, $((SECONDS - started)) s$(sed -n 's/^note /, /p' "$log" | tr -d '\n')"
	else
		tail -n 60 "$log" >&2
		say "package $name" "FAILED; whole output: $log"
		return 1
	fi
}

packages_main() {
	local name
	if [ $# -eq 0 ]; then
		mapfile -t names < <(package_names)
		set -- "${names[@]}"
	fi
	for name; do
		[ -e "$top/tests/packages/$name.sh" ] ||
			die "there is no test '$name' of the packages, only: $(package_names | paste -sd' ')."
	done
	each run_package "$@"
}
