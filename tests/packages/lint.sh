#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: neither lintian nor rpmlint nor mandoc has anything to say, and no installed document has a dead link
. /checkout/tests/packages/lib.sh

# The project has no mail address, closes no bug of Debian's, and is not made
# from a patched upstream; and a package that nobody uploads has no distribution.
not_ours=bogus-mail-host,bogus-mail-host-in-debian-changelog,initial-upload-closes-no-bugs,no-debian-changes
check "lintian" lintian --allow-root --fail-on error,warning --suppress-tags "$not_ours" \
	/packages/nvidia-peer-memory_*.changes
check "no override is left over" [ -z "$(lintian --allow-root --tags unused-override,mismatched-override \
	/packages/nvidia-peer-memory_*.changes)" ]
check "rpmlint" rpmlint --strict --config /checkout/rpm/rpmlint.toml /packages/*.rpm
for page in nv_peer_mem nvpm; do
	check "mandoc: $page" mandoc -Tlint -Wwarning "/checkout/docs/$page.8"
	check "groff: $page" [ -z "$(groff -man -Tutf8 -ww -rF0 "/checkout/docs/$page.8" 2>&1 >/dev/null)" ]
done

# dead_links DIR: of the documents below it, those that lead to no file.
dead_links() {
	local file target
	find "$1" -name '*.md' | while read -r file; do
		(grep -oE '\]\([^)]+\)' "$file" || true) | sed 's/^](//; s/[)#].*//' | while read -r target; do
			case $target in
			'' | *://*) ;;
			*) [ -e "${file%/*}/$target" ] || echo "$file: $target" ;;
			esac
		done
	done
}

mkdir /tmp/rpm
dpkg-deb -x /packages/nvidia-peer-memory_*_all.deb /tmp/deb
rpm2cpio /packages/nvidia_peer_memory-[0-9]*."$(uname -m)".rpm >/tmp/rpm.cpio
(cd /tmp/rpm && cpio -id --quiet </tmp/rpm.cpio)
for format in deb rpm; do
	documents=$(find "/tmp/$format/usr/share/doc" -name README.md -printf '%h\n')
	check "$format: there are documents" [ -e "$documents/docs/troubleshooting.md" ]
	check "$format: README.md leads to them" grep -q '](docs/troubleshooting.md)' "$documents/README.md"
	dead_links "$documents" >/tmp/dead
	cat /tmp/dead
	check "$format: no link is dead" [ ! -s /tmp/dead ]
done
