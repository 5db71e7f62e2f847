# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Finds out which features this kernel has: each file here asks for the feature in its name, and
# compiles only if the kernel has the feature. The version is not asked, because distributions take
# members and functions of later kernels into older ones. c/compat.h includes the answers.

# These are a module's flags. A warning does not mean no, except two: that a function is not
# declared, and that a pointer has another type.
nvpm-ask-cflags = $(c_flags) -Wno-error -Werror=implicit-function-declaration \
	-Werror=incompatible-pointer-types

quiet_cmd_nvpm_ask = ASK     $@
      cmd_nvpm_ask = sh $< $@ $(KERNELRELEASE) $(CC) $(nvpm-ask-cflags)

$(obj)/build/has/answers.h: part-of-module := y
$(obj)/build/has/answers.h: $(src)/build/has/ask $(wildcard $(src)/build/has/*.c) FORCE
	$(call if_changed_dep,nvpm_ask)

targets += build/has/answers.h
clean-files += $(addprefix build/has/answers.,h log new kernel)

# Files that include compat.h depend on answers.h.
$(addprefix $(obj)/,$(filter src/c/%,$(nv_peer_mem-y))): $(obj)/build/has/answers.h
ccflags-y += -I$(abspath $(obj)/build/has)
