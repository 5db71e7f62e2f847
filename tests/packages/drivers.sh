#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: the driver's symbols are found in compressed modules too, and their versions on a kernel that checks them
# All: kernels that compress modules, or give symbols versions
. /checkout/tests/packages/lib.sh

driver=/lib/modules/$kver/updates/dkms/nvidia.ko
cp -a /checkout/src /tmp/src

# located: what the build is told of the driver.
located() { KVER=$kver KDIR=${kdir-} saying /tmp/src/locate; }
symbols=/tmp/nvidia.symvers

check "the driver as it is" located
check "its functions are listed" grep -q nvidia_p2p_get_pages "$symbols"
check "without versions, for the kernel has none" fails grep -v '^0x00000000	' "$symbols"
cp "$symbols" /tmp/plain
# Packed, and found without depmod, which takes its time. Debian's modinfo reads
# no .gz, other distributions' does.
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
while read -r suffix program; do
	"$program" -c /tmp/driver >"$driver.$suffix"
	: >"$symbols"
	check "the driver in a .$suffix" located
	check "that file is the one" says "$driver.$suffix"
	check "the same functions are listed" cmp "$symbols" /tmp/plain
	rm "$driver.$suffix"
done <<-HOW
	xz xz
	zst zstd
	gz gzip
HOW
mv /tmp/driver "$driver"
rm /usr/local/bin/modinfo

# A kernel that checks versions, and drivers as such kernels' builds make them.
kdir=/tmp/versions
cp -a "/usr/src/linux-rust-$kver/." "$kdir"
rm "$kdir/.config"
{
	cat "/usr/src/linux-headers-$kver/.config"
	echo CONFIG_MODVERSIONS=y
} >"$kdir/.config"
check "a driver without versions will not do" fails located
check "it is said why" says "kernel $kver checks symbol versions, and $driver has none"

# versioned DIRECTIVES: adds __crc_ symbols to the driver.
versioned() {
	printf '%s\n' "$@" >/tmp/crc.s
	as -o /tmp/crc.o /tmp/crc.s
	cp "$driver" /tmp/driver
	ld -r -o "$driver" /tmp/driver /tmp/crc.o
}
mapfile -t names < <(cut -f2 /tmp/plain)
lines=() number=0
for name in "${names[@]}"; do
	number=$((number + 1))
	lines+=("__crc_$name: .long 0xfeed$((1000 + number))")
done
versioned '.section __kcrctab_gpl,"a"' "${lines[@]}"
check "versions in a section of their own" located
number=0
for name in "${names[@]}"; do
	number=$((number + 1))
	check "$name" grep -qx "0xfeed$((1000 + number))	$name	nvidia	EXPORT_SYMBOL	" "$symbols"
done
mv /tmp/driver "$driver"
versioned "${names[@]/#/.globl __crc_}" "$(printf '__crc_%s = 0x12345678\n' "${names[@]}")"
check "versions that are the symbols' values" located
check "all of them" [ "$(grep -c '^0x12345678	' "$symbols")" = "${#names[@]}" ]
