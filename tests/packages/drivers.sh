#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: build/configure finds the driver's symbols also in compressed modules, and, for a kernel
# that checks versions, the symbols' versions
. /checkout/tests/packages/lib.sh

cp -a /checkout/src /tmp/src
cp -a /checkout/build /tmp/build

# located: runs build/configure for the kernel tree $kdir, and prints its findings.
located() { KVER=$kver KDIR=${kdir-} sh /tmp/build/configure; }
symbols=/tmp/nvidia.symvers

check "the driver as it is" saying located
check "its functions are listed" grep -q nvidia_p2p_get_pages "$symbols"
check "without versions, for the kernel has none" fails grep -v '^0x00000000	' "$symbols"
cp "$symbols" /tmp/plain
# This replacement of modinfo finds the compressed driver without depmod, because depmod is slow. It
# also reads .gz, which Debian's modinfo does not read.
cat >/usr/local/bin/modinfo <<MODINFO
#!/bin/sh
for file; do :; done
case \$file in
nvidia) echo "$driver".*; exit ;;
*.gz) gzip -dc "\$file" >/tmp/plain.ko; set -- "\$1" "\$2" /tmp/plain.ko ;;
esac
exec /usr/sbin/modinfo "\$@"
MODINFO
chmod +x /usr/local/bin/modinfo
mv "$driver" /tmp/driver
for program in xz zstd gzip; do
	suffix=${program/zstd/zst} suffix=${suffix/gzip/gz}
	"$program" -c /tmp/driver >"$driver.$suffix"
	: >"$symbols"
	told "the driver in a .$suffix" "$driver.$suffix" located
	check "the same functions are listed" cmp "$symbols" /tmp/plain
	rm "$driver.$suffix"
done
mv /tmp/driver "$driver"
rm /usr/local/bin/modinfo

# From here on, the kernel checks versions. Builds for such kernels write the versions in one of two
# forms, and versioned() gives the driver versions in both forms.
kdir=/tmp/versions
cp -a "/usr/src/linux-rust-$kver/." "$kdir"
rm "$kdir/.config"
sed "\$aCONFIG_MODVERSIONS=y" "/usr/src/linux-headers-$kver/.config" >"$kdir/.config"
# The RDMA core has no versions either, so it is removed, and only the driver can be the reason of
# an error.
without "$core"
refused "a driver without versions will not do" "kernel $kver checks symbol versions, and $driver has none" located

# versioned DIRECTIVE...: adds the __crc_ symbols that these assembler directives define to the
# driver.
cp "$driver" /tmp/driver
versioned() {
	printf '%s\n' "$@" >/tmp/crc.s
	as -o /tmp/crc.o /tmp/crc.s
	ld -r -o "$driver" /tmp/driver /tmp/crc.o
}
mapfile -t names < <(cut -f2 /tmp/plain)
lines=()
for number in "${!names[@]}"; do lines+=("__crc_${names[number]}: .long 0xfeed$((1000 + number))"); done
versioned '.section __kcrctab_gpl,"a"' "${lines[@]}"
check "versions in a section of their own" saying located
for number in "${!names[@]}"; do
	check "${names[number]}" grep -qx "0xfeed$((1000 + number))	${names[number]}	nvidia	EXPORT_SYMBOL	" "$symbols"
done
versioned "${names[@]/#/.globl __crc_}" "$(printf '__crc_%s = 0x12345678\n' "${names[@]}")"
check "versions that are the symbols' values" saying located
check "all of them" [ "$(grep -c '^0x12345678	' "$symbols")" = "${#names[@]}" ]
