# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make            builds nv_peer_mem.ko for the running kernel
# make install    installs it (make modules_install is the same)
# make marker, make marker_install
#                 beside it a module called nvidia_peermem, for programs that look
#                 for that name; installed as nv_peer_mem_marker.ko
# make clean      removes what a build made
# make demo, test, all-tests, soak, bench, check, matrix ...: see `tests/run help`
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

# Modules of its own build, so that installing the one does not install the other.
marker: modules
	@settings=$$(src/locate 2>/dev/null) && eval "$$settings" && \
	$(MAKE) -C "$$KDIR" M='$(CURDIR)/src/marker' $$NVPM_COMPILER \
		KBUILD_EXTRA_SYMBOLS='$(CURDIR)/Module.symvers' modules

# Under its own name it would stand in the way of NVIDIA's.
marker_install: marker
	@kver=$${KVER:-$$(uname -r)} && \
	install -D -m 644 src/marker/nvidia_peermem.ko \
		"$${INSTALL_MOD_PATH-}/lib/modules/$$kver/extra/nv_peer_mem_marker.ko" && \
	depmod -b "$${INSTALL_MOD_PATH:-/}" "$$kver"

clean:
	$(RM) -r nvidia.symvers src/*.d src/bindings_generated.rs $(foreach dir,. src src/kunit src/marker, \
		$(addprefix $(dir)/,.*.cmd *.o *.ko *.mod *.mod.c modules.order Module.symvers .module-common.o))

demo test all-tests soak bench check host matrix:
	@tests/run $(@:-tests=)

.DEFAULT_GOAL := modules
.PHONY: modules modules_install clippy install marker marker_install clean demo test all-tests soak bench check host matrix
