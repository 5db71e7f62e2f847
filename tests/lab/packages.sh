# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck disable=SC2016 # commands for the shell inside the layers
#
# The packages: made, checked, and installed in the lab's root file system.

# What a release is made of. Tests are in it, but make no difference here.
package_sources=("$top/Kbuild" "$top/Makefile" "$top/dkms.conf" "$top/nv_peer_mem.conf" "$top/build_release.sh"
	"$top/README.md" "$top/LICENSE" "$top/LICENSES" "$top/.gitignore"
	"$top/src" "$top/init.d" "$top/docs" "$top/debian" "$top/rpm")

# packages_layer [MACHINE]: a guest's stack without module, with what
# packages are made with and the packages themselves, in $stack. $packages is the layer
# that has them, made on stock: in /packages and, of an older version, in /packages/old.
packages_layer() {
	packaging_layers stock
	layer_args=("$kver")
	layer packages "$stack" "packages, deb and rpm" "${package_sources[@]}"
	packages=$reply
	[ "${1:-stock}" = stock ] || packaging_layers "$1"
	stack=$packages:$stack
}

# packaging_layers MACHINE: no program for verbs is in them, which not every release's base
# could run.
packaging_layers() {
	local kernel
	choose_machine "$1"
	if is_arm64; then arm64_kernel_layers; else kernel_layers; fi
	driver_layers
	neighbours_layer
	kernel=$(tr : '\n' <<<"$stack" | grep -E '^(kernel|arm64kernel|cross|base)-' | paste -sd:)
	layer_args=()
	# On top of the kernel's packages: dpkg has one list of what is installed.
	layer_network=yes layer packaging "$kernel" "Debian's tools for packages (a minute)"
	stack=$reply:$stack
}

# machine_of NAME[@MACHINE]: without one it is stock.
machine_of() {
	case $1 in
	*@*) printf '%s\n' "${1#*@}" ;;
	*) echo stock ;;
	esac
}

# on_machines NAME FILE: NAME for stock, NAME@MACHINE for the others that the file's line
# "# Machines: ..." names; without one it is stock.
on_machines() {
	local machine machines
	machines=$(header "$2" Machines)
	for machine in ${machines:-stock}; do
		if [ "$machine" = stock ]; then echo "$1"; else echo "$1@$machine"; fi
	done
}

package_file() { printf '%s\n' "$top/tests/packages/${1%@*}.sh"; }

# key_package NAME[@MACHINE]: of all that its result depends on.
key_package() {
	packages_layer "$(machine_of "$1")"
	key_of "$1" "$stack" "$(hash_of "$top/tests/packages")"
}

# The tests are in tests/packages; each begins with what it shows.
package_names() {
	local file
	grep -l '^# Shows: ' "$top"/tests/packages/*.sh | while read -r file; do
		on_machines "$(basename "$file" .sh)" "$file"
	done
}

# run_package NAME[@MACHINE]: one line when it passes; when it does not, everything seen.
run_package() {
	local name=$1 started log scratch rc=0
	log=$LAB_CACHE/log/package-$name.log
	packages_layer "$(machine_of "$name")"
	started=$SECONDS
	new_dir tmp "package-$name"
	scratch=$reply
	local binds=("$top:/checkout:ro")
	in_layers "$stack" "$scratch" "/checkout/tests/packages/${name%@*}.sh" "$kver" >"$log" 2>&1 || rc=$?
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
		[ -e "$(package_file "$name")" ] ||
			die "there is no test '$name' of the packages, only: $(package_names | paste -sd' ')."
	done
	each run_package "$@"
}
