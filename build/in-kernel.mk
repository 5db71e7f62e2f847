# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Compiles the Rust against the kernel's own crate and the bindings that bindgen makes from the C
# headers. The kernel's own rules for Rust do the rest.

$(NVPM_NAME)-y += src/main.o

# The module contains its KUnit tests if KUnit is built into the kernel, and the kernel is Linux 7
# or later. Earlier Rust crates lack parts that the tests use. The version of the kernel is
# compared, because the C files of build/has cannot test for a part of a crate. A wrong result harms
# only these tests, and only developers' kernels run them.
nvpm-kunit := $(if $(filter y,$(CONFIG_KUNIT)),$(call test-ge,$(VERSION),7))
$(NVPM_NAME)-$(nvpm-kunit) += src/kunit/helpers.o
ccflags-$(nvpm-kunit) += -DNVPM_KUNIT
rustflags-$(nvpm-kunit) += --cfg nvpm_kunit

# bindgen parses headers with clang, which rejects some of GCC's options. Only definitions, include
# paths, and options about the widths of types change the meaning of a header. Only these options
# are passed to bindgen, so that a new option of GCC does no harm.
nvpm-bindgen-cflags = $(filter -D% -U% -I% -include %.h -Wp$(comma)-MMD% -nostdinc -std=% -m64 \
	-fshort-wchar -funsigned-char -fms-extensions -fms-anonymous-structs,$(c_flags)) \
	-w -fno-builtin -D__BINDGEN__ --target=$(NVPM_TARGET)

quiet_cmd_nvpm_bindgen = BINDGEN $@
      cmd_nvpm_bindgen = $(BINDGEN) $< --output $@ --use-core --ctypes-prefix ffi \
	--with-derive-default --no-layout-tests --no-doc-comments --no-debug '.*' \
	--rust-target 1.78 --no-prepend-enum-name --blocklist-type 'device|pci_dev' \
	--allowlist-type 'peer_memory_client|nvpm_(client|client_kind|counter|lock_name|region|region_state)|scatterlist|invalidate_peer_memory|sg_table' \
	--allowlist-type 'nvidia_p2p_(page|page_table|dma_mapping|page_size_type)' \
	--allowlist-var 'NVIDIA_P2P_PAGE_SIZE_.*|NVPM_NO_DEVICE|NVPM_REGION_.*|nvpm_.*' \
	--allowlist-function 'ib_(un)?register_peer_memory_client|nvidia_p2p_(get|put)_pages' \
	--allowlist-function 'nvidia_p2p_dma_(un)?map_pages|nvpm_.*|sg_free_table|pci_dev_(get|put)' \
	--blocklist-function 'nvpm_region_from|nvpm_pairs_each|nvpm_revoke|nvpm_callback_serve' \
	-- $(nvpm-bindgen-cflags)

$(obj)/src/bindings_generated.rs: $(src)/src/include/bindings.h FORCE
	$(call if_changed_dep,nvpm_bindgen)

targets += src/bindings_generated.rs
clean-files += src/bindings_generated.rs

$(obj)/src/main.o: $(obj)/src/bindings_generated.rs
$(obj)/src/main.o: export NVPM_OBJ := $(abspath $(obj))
$(obj)/src/main.o: export NVPM_VERSION := $(nvpm-version)
