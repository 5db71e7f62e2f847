# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Finds out which features the kernel has. Each C file in build/has, except control.c, compiles only
# if the kernel has the feature in the name of the file. The kernel's version does not tell this,
# because distributions backport members and functions of later kernels. src/c/compat.h includes the
# answers.

# The questions are compiled with a module's flags. Two warnings count as errors, because they mean
# that the feature is missing. One says that a function is not declared, and the other says that a
# pointer has another type. Other warnings do not count.
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
$(addprefix $(obj)/,$(filter src/c/%,$($(NVPM_NAME)-y))): $(obj)/build/has/answers.h
ccflags-y += -I$(abspath $(obj)/build/has)
