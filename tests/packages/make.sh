#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: `make` builds a release, installs it with the marker, and uninstalls it, without packages,
# also below another directory; and `make help` prints help
. /checkout/tests/packages/lib.sh

tar xzf "/packages/nvidia-peer-memory_$version.orig.tar.gz" -C /tmp
cd "/tmp/nvidia-peer-memory-$version" || exit
export KVER=$kver NVPM_RUST=prebuilt
files >/tmp/before

told "there is help" 'make uninstall removes' make help
for words in install "-j8 install"; do
	make clean >/dev/null
	# shellcheck disable=SC2086 # words of make
	refused "make $words before make is an error" "there is no nv_peer_mem.ko to install: run make first." make $words
done
check "nothing was installed" [ ! -e "/lib/modules/$kver/extra" ]
check "both in one call, with many processes" saying make -j8 modules install
callback_comes "$version"
check "removed again" saying make uninstall
rmdir "/lib/modules/$kver/extra"
check "it is made" saying make
refused "who is not root is not left with what the kernel's build system says" \
	"nv_peer_mem: nobody cannot write to /lib/modules/$kver: install as root (sudo make install), or below a directory of yours with DESTDIR=." \
	setpriv --reuid=nobody --clear-groups make install
umask 077
check "and installed" saying make install
check "of this version" [ "$(module_version)" = "$version" ]
check "where others do not put it" grep -q '/extra/nv_peer_mem\.ko' <(module_file)
check "the marker, too" saying make marker_install
umask 022
check "everybody can read them" [ "$(stat -c %a "/lib/modules/$kver/extra" "/lib/modules/$kver"/extra/*.ko* | paste -sd' ')" = "755 644 644 644" ]
callback_comes "$version"
check "it needs the module" grep -q '/extra/nv_peer_mem\.ko' <(loads nv_peer_mem_marker)
check "it is uninstalled" saying make uninstall
check "modprobe does not know it any more" fails module_file
check "nor the marker" fails loads nv_peer_mem_marker
check "nor the callback module" fails loads nv_peer_mem_callback
rmdir "/lib/modules/$kver/extra"
files >/tmp/after
check "nothing is left, nothing else is missing" diff /tmp/before /tmp/after
told "uninstalling again is no error" "make install has put nothing into /lib/modules/$kver/extra." make uninstall

# below WORD: checks that make installs below the directory `stage`, as when a package is made, and
# that it uninstalls there. WORD is the setting that names the directory. A relative path begins
# where make was called.
below() {
	check "$1: installed" saying make install marker_install "$1"
	check "$1: the modules are there" [ "$(cd "stage/lib/modules/$kver/extra" && echo nv_peer_mem*.ko*)" = \
		"$(cd "stage/lib/modules/$kver/extra" && echo nv_peer_mem.ko* nv_peer_mem_callback.ko* nv_peer_mem_marker.ko)" ]
	check "$1: and nothing else" [ "$(find stage -type f | wc -l)" = 3 ]
	check "$1: nothing was put anywhere else" fails module_file
	check "$1: uninstalled" saying make uninstall "$1"
	check "$1: nothing is left" [ -z "$(find stage -type f)" ]
	rm -r stage
}
below DESTDIR=stage
below INSTALL_MOD_PATH=stage
below "DESTDIR=$PWD/stage"
# If `stage` contains another system, depmod must update the lists of that system, and must leave
# the lists of this machine alone.
mkdir -p "stage/lib/modules/$kver"
cp "/lib/modules/$kver/modules.order" "/lib/modules/$kver/modules.builtin" "stage/lib/modules/$kver/"
check "installed into another system" saying make install DESTDIR=stage
check "modprobe finds the module there" grep -q '^extra/nv_peer_mem.ko' "stage/lib/modules/$kver/modules.dep"
check "and not here" fails module_file
check "uninstalled there" saying make uninstall DESTDIR=stage
check "modprobe finds the module there no more" fails grep -q nv_peer_mem "stage/lib/modules/$kver/modules.dep"
rm -r stage
files >/tmp/after
check "nothing else has changed" diff /tmp/before /tmp/after
tar tzf "/packages/nvidia-peer-memory_$version.orig.tar.gz" | sed '/\/$/d; s,^[^/]*,.,' | sort >/tmp/released
make clean >/dev/null
check "make clean leaves what the release has" diff /tmp/released <(find . ! -type d | sort)
for stage in "/tmp/a stage" "a stage"; do
	refused "a path with a blank" "/a stage contains a blank, a colon, a quote or another character" make install "DESTDIR=$stage"
done
