# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Who may hold registrations of GPU memory: a registration lives no longer than
# the open RDMA device that it was made through. Their names are cleaned (clean.sh):
# each process chooses its own.

# holders: the processes that have one open, as lines "PID NAME".
holders() {
	find "${NVPM_SYSROOT-}"/proc/[0-9]*/fd -lname '/dev/infiniband/uverbs*' 2>/dev/null |
		while read -r fd; do
			process=${fd%/fd/*}
			name=$(cat "$process/comm" 2>/dev/null) &&
				printf '%s %s\n' "${process##*/}" "$(clean_text "$name")"
		done | sort -nu
}
