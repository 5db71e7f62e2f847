# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Our own kernel crate, compiled here: any rustc of 1.78 or later (RUSTC) and the source of
# its library (NVPM_LIBRARY) compile core, the crate and the module, with the kernel's
# mitigations. Of old kernels these have other names.

nv_peer_mem-y += src/kernel/kernel.o src/kernel/rust.o

nvpm-mitigation-$(or $(CONFIG_MITIGATION_RETPOLINE),$(CONFIG_RETPOLINE)) += retpoline
nvpm-mitigation-$(or $(CONFIG_MITIGATION_SLS),$(CONFIG_SLS)) += sls
nvpm-mitigation-$(or $(CONFIG_MITIGATION_RETHUNK),$(CONFIG_RETHUNK)) += rethunk
nvpm-mitigation-$(CONFIG_X86_KERNEL_IBT) += ibt
nvpm-mitigation-$(CONFIG_CALL_PADDING) += padding=$(CONFIG_FUNCTION_PADDING_BYTES)
nvpm-mitigation-$(CONFIG_FRAME_POINTER) += frame-pointer

# A name of core that is left undefined would be taken from the running kernel's own.
# (The shell's -e passes over what fails in front of an &&.)
quiet_cmd_nvpm_rust = RUSTC [M] $@
      cmd_nvpm_rust = $< object $@ $(nvpm-mitigation-y) && \
	{ ! $(NM) -u $@ | grep ' _R' || { echo "nv_peer_mem: core is missing from $@" >&2; false; }; } \
	$(if $(cmd_objtool),&& { $(subst ;,,$(cmd_objtool)); }) || exit 1

$(obj)/src/kernel/rust.o: $(src)/src/kernel/compile $(wildcard $(src)/src/*.rs $(src)/src/*/*.rs) FORCE
	$(call if_changed,nvpm_rust)

targets += src/kernel/rust.o
clean-files += src/kernel/rust.build
