# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make            builds nv_peer_mem.ko for the running kernel
# make install    installs it (make modules_install is the same)
# make clean      removes what a build made
# make demo, test, soak, check, matrix ...: see `tests/run help`
#
# What a build needs is looked for, and what was found is printed. To choose:
#   KVER=        kernel release                   (default: uname -r)
#   KDIR=        its headers, with Rust metadata  (/lib/modules/KVER/build)
#   OFA_KERNEL=  RDMA core with peer memory       (/usr/src/ofa_kernel/...)
#   NV_SRC=      source of the NVIDIA driver      (/usr/src/nvidia-...)
#   LLVM= CC=    compiler                         (what KVER was compiled with)

export KVER KDIR OFA_KERNEL NV_SRC

# The key that the kernel's own modules are signed with is not to be had: whoever
# needs signatures signs with a key of their own, as dkms does.
modules_install: private INSTALL := INSTALL_MOD_DIR=extra CONFIG_MODULE_SIG_ALL=

modules modules_install clippy:
	@settings=$$(src/locate) && eval "$$settings" && \
	$(MAKE) -C "$$KDIR" M='$(CURDIR)' $$NVPM_COMPILER NVPM_INCLUDES="$$NVPM_INCLUDES" NVPM_CORE="$$NVPM_CORE" \
		NVPM_TARGET="$$NVPM_TARGET" KBUILD_EXTRA_SYMBOLS="$$NVPM_SYMBOLS" \
		$(if $(filter clippy,$@),CLIPPY=1 CLIPPY_CONF_DIR='$(CURDIR)') \
		$(INSTALL) $(if $(filter clippy,$@),modules,$@)$(if $(INSTALL), && \
	depmod -b "$${INSTALL_MOD_PATH:-/}" "$$KVER")

install: modules_install

clean:
	$(RM) -r .*.cmd *.o *.ko *.mod *.mod.c modules.order Module.symvers nvidia.symvers \
		src/.*.cmd src/*.o src/*.d src/kunit/.*.cmd src/kunit/*.o src/bindings_generated.rs

demo test soak check host matrix:
	@tests/run $@

.DEFAULT_GOAL := modules
.PHONY: modules modules_install clippy install clean demo test soak check host matrix
