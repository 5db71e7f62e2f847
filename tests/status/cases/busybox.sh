# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# A shell that prefers programs of its own: nothing else is said, or that nobody knows.
busybox=$(command -v busybox)
dash "$top/init.d/status" >"$scratch/text" 2>&1
code=0
"$busybox" sh "$top/init.d/status" >"$scratch/busybox" 2>&1 || code=$?
if [ "$code" = 0 ] && cmp -s "$scratch/text" "$scratch/busybox"; then ok; else fail "exit code $code: $(diff "$scratch/text" "$scratch/busybox")"; fi

# Where there is no bash either.
code=0
PATH=$scratch/none "$busybox" sh "$top/init.d/status" --prometheus >"$scratch/text" 2>"$scratch/errors" || code=$?
if [ "$code" = 4 ] && [ ! -s "$scratch/text" ] && grep -q 'unknown: this needs a full find' "$scratch/errors"; then
	ok
else fail "without bash: exit code $code: $(cat "$scratch/errors")"; fi
