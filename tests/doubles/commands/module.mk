# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Makes files that stand for the module's files, with the version and contents of their source.
marker:
	version=$$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$$/\1/p' dkms.conf); mkdir -p src/marker; \
	for file in nv_peer_mem nv_peer_mem_callback src/marker/nvidia_peermem; do echo "$$version $$(cat made-of)" >$$file.ko; done

clean: ;
.PHONY: marker clean
