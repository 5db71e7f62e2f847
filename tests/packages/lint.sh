#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: lintian, rpmlint and mandoc find nothing, and no installed document has a dead link
. /checkout/tests/packages/lib.sh

# These messages of lintian do not matter here: the project has no mail address, closes no bugs of
# Debian, and has no patched upstream.
not_ours=bogus-mail-host,bogus-mail-host-in-debian-changelog,initial-upload-closes-no-bugs,no-debian-changes
check "lintian" lintian --allow-root --fail-on error,warning --suppress-tags "$not_ours" \
	/packages/nvidia-peer-memory_*.changes
check "no override is left over" [ -z "$(lintian --allow-root --tags unused-override,mismatched-override \
	/packages/nvidia-peer-memory_*.changes)" ]
check "rpmlint" rpmlint --strict --config /checkout/rpm/rpmlint.toml /packages/*.rpm
for page in nv_peer_mem.8 nvpm.8 nvpm_preload.7; do
	check "mandoc: $page" mandoc -Tlint -Wwarning "/checkout/docs/$page"
	check "groff: $page" [ -z "$(groff -man -Tutf8 -ww -rF0 "/checkout/docs/$page" 2>&1 >/dev/null)" ]
done

# headed FILE PLACE: succeeds if FILE has a heading whose anchor is PLACE.
headed() { sed -n 's/^#\+ //p' "$1" | tr -d '`.,:;?!()/&'\''"' | tr 'A-Z ' 'a-z-' | grep -qxF -e "$2"; }

# dead_links DIR: prints each link in the pages of DIR and DIR/docs whose file or heading does not
# exist.
dead_links() {
	local file target place
	for file in "$1"/*.md "$1"/docs/*.md; do
		(grep -oE '\]\([^):]+\)' "$file" || true) | sed 's/^](//; s/)$//' | while read -r target; do
			place=${target#"${target%%#*}"}
			target=${target%%#*}
			target=${target:+${file%/*}/$target}
			[ -e "${target:-$file}" ] || echo "$file: no ${target#"$1"/}"
			[ -z "$place" ] || headed "${target:-$file}" "${place#\#}" || echo "$file: no $place in ${target:-$file}"
		done
	done
}

# none_dead TEXT DIR: checks that no link in the pages of DIR is dead.
none_dead() {
	dead_links "$2" >/tmp/dead
	cat /tmp/dead
	check "$1: no link is dead" [ ! -s /tmp/dead ]
}

mkdir /tmp/rpm
dpkg-deb -x /packages/nvidia-peer-memory_*.deb /tmp/deb
rpm2cpio /packages/nvidia_peer_memory-[0-9]*."$(uname -m)".rpm >/tmp/rpm.cpio
(cd /tmp/rpm && cpio -id --quiet </tmp/rpm.cpio)
for format in deb rpm; do
	documents=$(find "/tmp/$format/usr/share/doc" -name README.md -printf '%h\n')
	check "$format: there are documents" [ -e "$documents/docs/troubleshooting.md" ]
	check "$format: and the messages that nvpm explain knows" grep -q '^## Causes' "$documents/docs/messages.md"
	for file in bash-completion/completions/nvpm fish/vendor_completions.d/nvpm.fish zsh/*/_nvpm; do
		# shellcheck disable=SC2086
		check "$format: completion for ${file%%/*}" grep -q prometheus "/tmp/$format/usr/share/"$file
	done
	check "$format: README.md leads to them" grep -q '](docs/troubleshooting.md)' "$documents/README.md"
	none_dead "$format" "$documents"
	for page in performance programs proof architecture rust; do
		check "$format: $page.md, which is for developers, stays in the sources" [ ! -e "$documents/docs/$page.md" ]
	done
done
none_dead "the sources" /checkout
