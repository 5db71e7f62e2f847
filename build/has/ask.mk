# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What this kernel has: a file here asks for what it is named after, and compiles only if the
# kernel has that. Not by version: distributions take members and functions of later kernels
# into older ones. c/compat.h includes the answers.

# The flags of a module. A warning is no answer, but two are: a function that is not declared,
# and one of another type.
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
