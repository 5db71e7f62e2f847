# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the tests for hardware, on the simulated GPU and driver: every step holds, and everything is as before
# Gpu: 512
. /lab/hardware_runs.sh
load_neighbours
echo $((256 << 20)) >"$NVIDIA/bar1_bytes"
modprobe nvidia-peermem
modules=$(others)

check "only looking" hardware --dry-run
check "has written nothing" test ! -e "$state"

rc=0
# shellcheck disable=SC2119
hardware >/tmp/said 2>&1 || rc=$?
cat /tmp/said
equal "exit code" 0 "$rc"
check "every step that was tried held" page '^nv_peer_mem on hardware: ([0-9]+) of \1 steps held$'
check "the kernel's log was read" eval "! page 'log since this step cannot be read'"
check "an archive for others" tar -tzf "$(echo "$state"/*/hardware-report.tar.gz)"
check "a BAR1 that is full was tried" grep -q 'more than BAR1 has free: ENOMEM' "$state"/*/journal
check "every kind of memory was tried" eval "! grep -q 'kinds.*\"word\": \"not\"' $state/*/journal"
as_before "after all steps"
rm -rf "$state"
check "the GPU's half" hardware --gpus --no-measure
equal "a GPU that CUDA does not list" \
	"not CUDA does not list 0000:ff:00.0: CUDA_VISIBLE_DEVICES hides it, or nvidia-smi says more" \
	"$(echo cuda | "$built/hardware-client" --gpu 0000:ff:00.0)"
check "its exports were tried" page '^  cuda/gpu0/exports: [0-9]+ checks'

# Two clients as on two machines: the double of ssh stays on this one.
printf '#!/bin/sh\nshift 5\nexec sh -c "$*"\n' >/run/double/ssh
chmod 755 /run/double/ssh
rm -rf "$state"
check "a peer" hardware --no-measure --peer other --only peer-transfers --only peer-killed
check "the steps with the peer were run" page "^  revocable/gpu0-$HCA/peer-killed: 2 checks"
as_before "after the steps with a peer"

# The steps notice what the driver does wrong.
rm -rf "$state"
for step in sizes freed many; do
	with fail 'get_pages_persistent EBUSY 1' check "$step notices a pin that fails" \
		eval "! hardware --no-measure --only $step >/tmp/said 2>&1"
	check "$step is the one that did not hold" page "^  persistent/gpu0-$HCA/$step \(failed\)$"
	rm -rf "$state"
done
as_before "after pins that failed"

rmmod nvidia_peermem
