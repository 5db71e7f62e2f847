#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: neither lintian nor rpmlint nor mandoc has anything to say
. /checkout/tests/packages/lib.sh

check "lintian" lintian --allow-root --fail-on error,warning --suppress-tags bad-distribution-in-changes-file \
	/packages/nvidia-peer-memory_*.changes
check "rpmlint" rpmlint --strict --config /checkout/rpm/rpmlint.toml /packages/*.rpm
check "mandoc" mandoc -Tlint -Wwarning /checkout/docs/nv_peer_mem.8
check "groff" [ -z "$(groff -man -Tutf8 -ww -rF0 /checkout/docs/nv_peer_mem.8 2>&1 >/dev/null)" ]
