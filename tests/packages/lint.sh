#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: neither lintian nor rpmlint nor mandoc has anything to say
# Test: stock
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
