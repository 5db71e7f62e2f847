/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the assembly of a release needs of the kernel that it is for. Where
 * that has no mitigation, its thunk is not there either.
 */
#if defined(CONFIG_CFI) || defined(CONFIG_CFI_CLANG)
#error "this kernel checks the type of indirect calls (CFI), for which this was not compiled"
#endif

#ifdef CONFIG_X86_64
#if !defined(CONFIG_MITIGATION_RETPOLINE) && !defined(CONFIG_RETPOLINE)
#error "this kernel has no retpolines, which this was compiled for"
#endif

	.macro nvpm_return
#if defined(CONFIG_MITIGATION_RETHUNK) || defined(CONFIG_RETHUNK)
	jmp	__x86_return_thunk
#else
	ret
	/* Only the objtool of kernels that ask for it knows it there. */
#if defined(CONFIG_MITIGATION_SLS) || defined(CONFIG_SLS)
	int3
#endif
#endif
	.endm

#include "../prebuilt/x86_64.S"
#elif defined(CONFIG_ARM64)
#include "../prebuilt/aarch64.S"
#endif
