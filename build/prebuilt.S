/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The module's Rust, which was compiled in advance for all kernels of an architecture. Calls
 * through pointers and returns go through thunks, which the kernel patches when it loads the
 * module. A kernel without such a mitigation has no thunk, so this file defines plain ones.
 */
#if defined(CONFIG_CFI) || defined(CONFIG_CFI_CLANG)
#error "this kernel checks the type of indirect calls (CFI), for which this was not compiled"
#endif

#ifdef CONFIG_X86_64
	/* objtool accepts an int3 here only in kernels that ask for it. */
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
	/* rustc calls only through this register. */
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
