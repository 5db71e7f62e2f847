/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * This file includes the module's Rust, which was compiled in advance for all kernels of an
 * architecture. On x86-64, indirect calls and returns go through thunks, which the kernel patches
 * when it loads the module. If a kernel lacks a mitigation, and therefore its thunk, this file
 * defines a plain jump or return instead.
 */
#if defined(CONFIG_CFI) || defined(CONFIG_CFI_CLANG)
#error "this kernel checks the type of indirect calls (CFI), for which this was not compiled"
#endif

#ifdef CONFIG_X86_64
	/* objtool rejects an int3 after a jump or return in kernels without the mitigation SLS. */
	.macro nvpm_no_speculation
#if defined(CONFIG_MITIGATION_SLS) || defined(CONFIG_SLS)
	int3
#endif
	.endm

	.macro nvpm_return
#if defined(CONFIG_MITIGATION_RETHUNK) || defined(CONFIG_RETHUNK)
	jmp	__x86_return_thunk
#else
	ret
	nvpm_no_speculation
#endif
	.endm

#if !defined(CONFIG_MITIGATION_RETPOLINE) && !defined(CONFIG_RETPOLINE)
	/* Only the thunk of r11 is needed, because rustc makes all indirect calls through r11. */
	.text
	.type	__x86_indirect_thunk_r11, @function
__x86_indirect_thunk_r11:
	jmp	*%r11
	nvpm_no_speculation
	.size	__x86_indirect_thunk_r11, . - __x86_indirect_thunk_r11
#endif

#include "prebuilt/x86_64.S"
#elif defined(CONFIG_ARM64)
#include "prebuilt/aarch64.S"
#endif
