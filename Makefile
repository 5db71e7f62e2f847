# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make            builds nv_peer_mem.ko for the running kernel, and nv_peer_mem_callback.ko
# make install    installs it (make modules_install is the same)
# make uninstall  removes what these have installed for the kernel
# make help       this text
# make marker, make marker_install
#                 also a module called nvidia_peermem, for programs that look
#                 for that name; installed as nv_peer_mem_marker.ko
# make preload    preload/libnvpm_preload.so, for programs to preload (docs/choosing.md)
# make nvpm       nvpm-bin, the part of nvpm that is written in Rust (docs/building.md)
# make prebuilt   compiles the Rust into build/prebuilt, as releases contain it
# make bindings   makes src/include/bindings.rs from the headers of kernel KVER
# make clean      removes what a build made
# make demo, test, all-tests, debug, soak, bench, check ...: see `tests/run help`
#
# What a build needs is looked for, and what was found is printed. To choose:
#   KVER=        kernel release                   (default: that of KDIR=, uname -r)
#   KDIR=        its headers                      (/lib/modules/KVER/build)
#   OFA_KERNEL=  RDMA core with peer memory       (ib_core of KVER, /usr/src/ofa_kernel/...)
#   NV_SRC=      source of the NVIDIA driver      (/usr/src/nvidia-...)
#   CORE_ROOT=   root below which the core is     (/)
#   DRIVER_ROOT= root below which the driver is   (/)
#   NVPM_NAME=   nv_peer_mem or nvidia_peermem: the module's name (docs/kubernetes.md)
#   NVPM_RUST=   in-kernel or prebuilt: how Rust is compiled (docs/building.md)
#   RUSTC=       Rust's compiler                  (rustc, rustc-1.99 ... rustc-1.78)
#   CARGO=       for make nvpm, with its rustc    (cargo, cargo-1.99 ... cargo-1.85)
#   BINDGEN=     for the kernel's own crates      (bindgen-0.65 ..., bindgen)
#   LLVM= CC=    compiler                         (what KVER was compiled with)
#   DESTDIR=     root directory to install in     (/; INSTALL_MOD_PATH= is the same)
# OFA_KERNEL= and NV_SRC= can stand in /etc/nv_peer_mem-build.conf, too: for dkms.

override INSTALL_MOD_PATH := $(or $(INSTALL_MOD_PATH),$(DESTDIR))
export KVER KDIR OFA_KERNEL NV_SRC CORE_ROOT DRIVER_ROOT NVPM_NAME NVPM_RUST RUSTC CARGO BINDGEN INSTALL_MOD_PATH

modules modules_install clippy:
	@MAKE='$(MAKE)' sh build/make $@

install: modules_install

marker: modules
	@MAKE='$(MAKE)' sh build/make marker

marker_install: marker
	@sh build/make marker_install

uninstall:
	@sh build/make uninstall

help:
	@sed -n '3,/^$$/s/^# \{0,1\}//p' Makefile

preload:
	@sh preload/build library

nvpm:
	@sh nvpm/compile here

prebuilt:
	@sh build/make prebuilt

bindings:
	@MAKE='$(MAKE)' NVPM_RUST=in-kernel sh build/make modules
	{ printf '// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause\n\n'; cat src/bindings_generated.rs; } >src/include/bindings.rs
	rustfmt src/include/bindings.rs

clean:
	$(RM) -r .tmp_versions ib_core.symvers nvidia.symvers src/*.d src/bindings_generated.rs build/has/answers.* build/has/.answers.* build/prebuilt/rust.build \
		preload/libnvpm_preload.so preload/prebuilt/rust.build nvpm-bin nvpm/target \
		$(foreach dir,. src src/c src/callback build build/has src/kunit src/marker src/kernel, \
		$(addprefix $(dir)/,.*.cmd .*.d *.o *.ko *.mod *.mod.c modules.order Module.symvers .module-common.o))

demo test all-tests debug soak bench check host:
	@tests/run $(@:-tests=)

# `make -j8 modules install` would install what is not built yet. The kernel's make below keeps its -j.
.NOTPARALLEL:
.DEFAULT_GOAL := modules
.PHONY: modules modules_install clippy install uninstall help marker marker_install preload nvpm prebuilt bindings clean demo test all-tests debug soak bench check host
