# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Compiles the module for the kernel in each possible way, without a warning, installs it in
# /lib/nv_peer_mem/rust-WAY, and examines it (object). /compiled has the findings.
set -euo pipefail
kver=$1
tree=/lib/modules/$kver/build
source=/tmp/build
core=/usr/src/ofa_kernel/default/Module.symvers
mkdir "$source"
cp -a /in/Kbuild /in/Makefile /in/dkms.conf /in/build /in/src "$source/"
cp -a /in/ready "$source/build/prebuilt"

# build WAY: builds nv_peer_mem.ko and its marker in /tmp/build, and fails if objtool or modpost
# print a message.
build() {
	make -C "$source" clean >/dev/null
	SECONDS=0
	# /opt/binutils has the kernel's own assembler and linker, if the lab's are others.
	PATH=/opt/binutils/bin:$PATH LD_LIBRARY_PATH=/opt/binutils/usr/lib/x86_64-linux-gnu \
		make -C "$source" KVER="$kver" NVPM_RUST="$1" marker >/tmp/said 2>&1 || { cat /tmp/said; return 1; }
	cat /tmp/said
	if grep -iE 'warning|objtool:|modpost:' /tmp/said | grep -v -e 'compiler differs' -e 'pahole version'; then return 1; fi
}

# beside KIND COMMAND...: runs COMMAND with the open or the closed NVIDIA modules installed.
beside() {
	local installed=/lib/modules/$kver/updates/dkms/nvidia.ko other=/lib/nv_peer_mem/$1/nvidia.ko
	cp "$installed" /tmp/installed.ko
	[ ! -e "$other" ] || cp "$other" "$installed"
	"${@:2}"
	cp /tmp/installed.ko "$installed"
}

# look WAY [NAME]: installs the module as rust-NAME, and writes a paragraph of /compiled. A NAME
# that ends in -open is examined for a machine with the open driver.
look() {
	local ko=$source/nv_peer_mem.ko bytes
	[ "$(modinfo -F rust "$ko")" = "$1" ]
	strip --strip-debug -o /tmp/stripped.ko "$ko"
	# BTF is also debug information, which some kernels give to modules and load.
	strip --strip-debug -R .BTF -R .BTF.base -o /tmp/bare.ko "$ko"
	bytes=$(stat -c %s /tmp/bare.ko)
	printf '%s for %s: compiled in %s s, %s bytes\n' "$1" "$kver" "$SECONDS" "$bytes"
	# With KASAN the module is larger: every access is a call, and the KUnit tests are included.
	grep -q '^CONFIG_KASAN=y' "$tree/.config" || [ "$bytes" -lt 200000 ]
	local driver=closed
	[[ ${2-} != *-open ]] || driver=open
	/in/object "$driver" "$ko" "$tree" "$core" "$source/nvidia.symvers" "$source/Module.symvers"
	[ "$1" = in-kernel ] || /in/object closed "$source/src/marker/nvidia_peermem.ko" "$tree" "$source/Module.symvers"
	install -D -m 644 /tmp/stripped.ko "/lib/nv_peer_mem/rust-${2:-$1}/nv_peer_mem.ko"
}

# mistakes: checks that the examination can fail, with one mistake of each kind.
mistakes() {
	# A build accepts only an assembly with this last line, and makes any other assembly again.
	local assembly last='/* end of the assembly */'
	for assembly in "$source/build/prebuilt/"*.S; do sed -i '$d' "$assembly"; done
	cat >>"$source/build/prebuilt/x86_64.S" <<-'ASM'
		.text
		.globl	nvpm_mistake
		nvpm_mistake:
			movss	%xmm0, %xmm1
			leaq	_GLOBAL_OFFSET_TABLE_(%rip), %rax
			call	*%rax
			call	kset_find_obj
			ret
		.data
			.quad	nvpm_mistake
	ASM
	cat >>"$source/build/prebuilt/aarch64.S" <<-'ASM'
		.text
		nvpm_mistake:
			str	x30, [sp, #-16]!
			fmov	d0, d1
			adrp	x0, _GLOBAL_OFFSET_TABLE_
			bl	kset_find_obj
			ret
	ASM
	for assembly in "$source/build/prebuilt/"*.S; do printf '%s\n' "$last" >>"$assembly"; done
	build prebuilt >/dev/null || true
	if /in/object closed "$source/nv_peer_mem.ko" "$tree" "$core" "$source/nvidia.symvers" "$source/Module.symvers" >/tmp/mistakes; then return 1; fi
	# Old kernels load no module that needs that table, and modpost does not report it.
	local kind kinds=('imports for GPL' 'nobody exports _GLOBAL_OFFSET_TABLE_')
	if [ "$(uname -m)" = x86_64 ]; then kinds+=('SSE'); else kinds+=('floating point' 'return addresses'); fi
	! grep -qE '^CONFIG_(MITIGATION_)?RETHUNK=y' "$tree/.config" || kinds+=('bare returns')
	! grep -qE '^CONFIG_(MITIGATION_)?RETPOLINE=y' "$tree/.config" || kinds+=('indirect calls')
	! grep -q '^CONFIG_X86_KERNEL_IBT=y' "$tree/.config" || kinds+=('no endbr64 at .*nvpm_mistake')
	for kind in "${kinds[@]}"; do grep "^WRONG: $kind" /tmp/mistakes; done
}

# oldest: writes /tmp/oldest.h. After the headers of this kernel, it takes the names away that
# kernels from 4.18 on may lack, also from the questions in build/has, whose answers are then those
# of the oldest kernel. So the module must compile without these names.
oldest() {
	local name
	{
		grep -rhoE --include='*.[ch]' --exclude='*.mod.c' '^#include <linux/[a-z0-9_-]+\.h>' "$source/src" | sort -u |
			sed -E 's/.*(<.*)/#if __has_include(\1)\n#include \1\n#endif/'
		# Each file defines pr_fmt itself; the other names came between 4.20 and 5.10.
		printf '#undef %s\n' pr_fmt static_assert
		for name in is_pci_p2pdma_page default_groups xa_load ktime_get_boottime_ns fallthrough mmap_read_lock dma_map_sgtable \
			for_each_sgtable_sg for_each_sgtable_dma_sg kfree_sensitive sysfs_emit sysfs_emit_at; do
			printf '#undef %s\n#pragma GCC poison %s\n' "$name" "$name"
		done
	} >/tmp/oldest.h
}

ways=(prebuilt)
[ ! -e "$tree/rust/libkernel.rmeta" ] && [ ! -e "/usr/src/linux-rust-$kver" ] || ways+=(in-kernel)

# This subshell is not part of a list with ||, because the shell would then not stop at a failure.
(
	for way in "${ways[@]}"; do
		if [ "$way" = in-kernel ]; then beside open build in-kernel; else beside closed build "$way"; fi
		look "$way"
	done
	# With the open driver, the module uses functions that are for GPL modules only.
	if grep -qw dma_iova_try_alloc "$tree/Module.symvers"; then
		beside open build prebuilt
		look prebuilt prebuilt-open
	fi
	# Code for kernels from 4.18 on is compiled for the oldest kernel of the lab.
	if [[ $kver = 5.10.* ]]; then
		oldest
		KCFLAGS='-include /tmp/oldest.h' beside closed build prebuilt
		# These two features must be there: they have no replacement.
		[ "$(sed -n 's/^#define NVPM_HAS_//p' "$source/build/has/answers.h" | xargs)" = 'PROC_OPS START_BOOTTIME' ]
		look prebuilt prebuilt-oldest
	fi
	grep -q '^CONFIG_CC_IS_CLANG=y' "$tree/.config" || mistakes
) >/tmp/report 2>&1 &
wait $! || { cat /tmp/report; exit 1; }
grep -E '^(in-kernel|prebuilt) for |^imports|^bare|^indirect|^SSE|^endbr64|^floating|^paciasp' /tmp/report >/compiled
cat /compiled
