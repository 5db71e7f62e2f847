# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# What puts a mutant into a copy of the checkout, for `run` beside this and for ../fuzz/run. Who sources
# this sets $top, the checkout, and $copy.
set -euo pipefail

mutants=$top/tests/host/mutants

# names FILE...: of the mutants in them.
names() { sed -n 's/^\([a-z_-]*\): .*/\1/p' "$@"; }

# mutant NAME: its paragraph, as a patch of the file that stands first in its own.
mutant() {
	awk -v RS= -v name="$1:" '
		FNR == 1 { sub(/^[^\n]*\n/, ""); file = $0 }
		$1 == name { sub(/\n@@/, "\n" file "&"); print }' "$mutants"/*.mutants
}

# new_copy: of what mutants are compiled from.
new_copy() {
	rm -rf "$copy"
	mkdir -p "$copy"
	tar -C "$top" --exclude=target -cf - tests/host | tar -C "$copy" -xf -
}

# fresh_files: the files as they are, and newer than anything built from a mutant.
fresh_files() {
	rm -rf "$copy/src"
	cp -r "$top/src" "$copy/src"
}

# put_in NAME: the mutant into the copy; false if it does not fit the files any more.
put_in() {
	mutant "$1" >"$copy/mutant"
	fresh_files
	patch -d "$copy" -p1 --silent --fuzz=0 --no-backup-if-mismatch <"$copy/mutant" >"$copy/log"
}
