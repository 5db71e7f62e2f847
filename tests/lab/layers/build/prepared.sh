# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# prepared.sh WORD KVER NEWER_KVER: runs tests/guest/systems/prepare/WORD.sh on a system, as if the
# system ran kernel KVER. The packages are in /in/packages.
set -euo pipefail
# shellcheck disable=SC2034 # WORD.sh uses them
kver=$2 newer_kver=$3
mkdir /tmp/bin
cat >/tmp/bin/uname <<UNAME
#!/bin/sh
case " \$* " in
*" -r "*) echo $kver ;;
*) exec /usr/bin/uname "\$@" ;;
esac
UNAME
chmod 755 /tmp/bin/uname
PATH=/tmp/bin:$PATH

# A node of a cluster has no Rust, unless somebody wants the kernel's own crates.
[ -e "/usr/src/linux-rust-$kver" ] || rm -f /usr/bin/rustc

# shellcheck disable=SC1090 # the scenario names the file
. "/in/$1.sh"
