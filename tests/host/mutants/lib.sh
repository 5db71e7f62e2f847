# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Functions that put a mutant into a copy of the checkout. `run` in this directory sources this file.
# Before, it sets $top to the checkout and $copy to the directory of the copy.
set -euo pipefail

mutants=$top/tests/host/mutants

# names FILE...: prints the names of the mutants in these files.
names() { sed -n 's/^\([a-z_-]*\): .*/\1/p' "$@"; }

# mutant NAME: prints the paragraph of a mutant, after the line that names its file.
mutant() {
	awk -v RS= -v name="$1:" '
		FNR == 1 { sub(/^[^\n]*\n/, ""); file = $0 }
		$1 == name { print file; print }' "$mutants"/*.mutants
}

# new_copy: makes the copy, with all files that a mutant or its test needs.
new_copy() {
	rm -rf "$copy"
	mkdir -p "$copy"
	tar -C "$top" --exclude=target -cf - tests/host build/has | tar -C "$copy" -xf -
}

# fresh_files: copies src again. Its files are then newer than everything that was built from the
# mutant before, so they are compiled again.
fresh_files() {
	rm -rf "$copy/src"
	cp -r "$top/src" "$copy/src"
}

# put_in NAME: puts the mutant into the copy. Fails if the file lacks the lines that the mutant
# quotes.
put_in() {
	mutant "$1" >"$copy/mutant"
	fresh_files
	python3 -B "$mutants/put_in.py" "$copy/mutant" "$copy/$(sed -n 's/^File: //p' "$copy/mutant")" >"$copy/log"
}
