# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The ground "free": any rustc of 1.78 or later (RUSTC) and the source of its library
# (NVPM_LIBRARY) compile core and the module, with the kernel's mitigations. Of old
# kernels these have other names.

nv_peer_mem-y += src/rt/free.o src/rt/free_rust.o

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

$(obj)/src/rt/free_rust.o: $(src)/src/rt/free/compile $(src)/src/abi/bindings.rs \
		$(wildcard $(src)/src/*.rs $(src)/src/p2p/*.rs $(src)/src/rt/*.rs $(src)/src/rt/free/*.rs) FORCE
	$(call if_changed,nvpm_rust)

targets += src/rt/free_rust.o
clean-files += src/rt/free.build
