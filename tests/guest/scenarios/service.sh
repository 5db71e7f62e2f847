# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the service loads what the module needs, or says why it cannot; its status tells the truth
. /lab/driver.sh
last "it takes the installed module, core and driver away"

service=/etc/init.d/nv_peer_mem
options=/etc/modprobe.d/lab.conf
file=$(modinfo -n nv_peer_mem)
rust=$(modinfo -F rust nv_peer_mem)

# The service's output has these words for the flavours of the driver.
declare -A called=(
	[open]=open
	[closed]=proprietary
)

# serves EXIT_CODE VERB [PATTERN...]: checks the exit code and the output of the service.
serves() {
	local rc=0 pattern
	# shellcheck disable=SC2086 # words
	"$service" $2 >/tmp/said 2>&1 || rc=$?
	cat /tmp/said
	equal "$2: exit code" "$1" "$rc"
	for pattern in "${@:3}"; do check "$2: it says '$pattern'" grep -qE -- "$pattern" /tmp/said; done
}

# figures NAME=EXPECTED...: checks figures of the module's statistics.
figures() {
	local figure
	for figure; do equal "statistics" "$figure" "${figure%=*}=$(statistic "${figure%=*}")"; done
}

# unload_core: unloads the RDMA core, which is the kernel's own core or the lab's.
unload_core() {
	local name
	for name in ib_uverbs ib_uverbs_support ib_core; do
		[ ! -d "/sys/module/$name" ] || rmmod "$name"
	done
}

# No module is loaded yet, so the service must also load the driver and the RDMA core.
serves 3 'status --all' 'not running' 'not loaded' 'nv_peer_mem start'
echo 'options nv_peer_mem persistent_api_support=2' >"$options"
serves 1 start 'the values of this parameter are 0 and 1' 'grep -r nv_peer_mem /etc/modprobe.d'
rm "$options"
for needed in ib_uverbs nvidia; do
	check "$needed was loaded" test -d "/sys/module/$needed"
done

mv "$file" "$file.away"
serves 5 start 'no module for kernel' 'Build it: make && make install'
# If symbols have versions, the kernel ignores the first word of the version magic. The second word
# is therefore changed.
sed 's/\(vermagic=[^ ]* \)SMP/\1XMP/' "$file.away" >"$file"
serves 1 start "version magic '[^ ]* XMP" 'built for another kernel'
mv "$file.away" "$file"

unload_gpu
if [ "$rust" = in-kernel ]; then
	load_flavour closed
	serves 1 start 'from proprietary module nvidia' 'Build it again, and it does without them: make && make install'
	serves 3 'status --all' 'rust +in-kernel' '!!  flavour +proprietary' 'make && make install'
	unload_gpu
fi

modprobe nvidia-peermem
serves 1 start 'nvidia_peermem is loaded' 'modprobe -r nvidia_peermem'
rmmod nvidia_peermem

# The kernel's own RDMA core has no peer memory.
unload_core
own=/lib/modules/$(uname -r)/kernel/drivers/infiniband/core
for name in ib_core ib_uverbs_support ib_uverbs; do
	for module in "$own/$name".ko*; do [ ! -e "$module" ] || insmod "$module"; done
done
serves 1 start 'Unknown symbol ib_register_peer_memory_client' 'Install MLNX_OFED'
unload_core

# Now every neighbour is right.
load_rdma
serves 0 start 'loaded, version'
serves 0 start 'loaded already'
wait_for "the GPU" test -c /dev/nvidia-lab
serves 0 'status --all' 'nv_peer_mem: running' 'ok  state +loaded' 'ok  peer memory +yes, in ib_core' \
	'ok  client nv_mem +persistent' 'ok  client nv_mem_revocable +revocable' "ok  flavour +${called[$(flavour)]}" "   rust +$rust: " \
	'ok  NCCL, up to 2.22 +yes' 'ok  UCX +yes' ' !  libfabric +no' 'place +0000:.*, software over' \
	'0000:[0-9a-f:.]+ +PHB +rxe0'

# The marker is not installed here. The service must warn about this, and load the module
# nevertheless.
sed -i 's/^MARKER=.*/MARKER=yes/' /etc/infiniband/nv_peer_mem.conf
serves 0 restart 'loaded, version' 'MARKER=yes, but the marker cannot be loaded'
sed -i 's/^MARKER=.*/MARKER=no/' /etc/infiniband/nv_peer_mem.conf

# A registration keeps the module in use. The service must name the process that has the
# registration.
hold gpuverbs transfer --from 0 --to 8M --length 300001 --seed 3 --hold
figures reachable_regions=2 bytes=$((2 * 5 * 65536))
serves 1 stop 'registrations of GPU memory: 2' "process $held \(gpuverbs, user root\)"
serves 1 restart 'registrations of GPU memory: 2'
serves 0 'status --all' 'reachable_regions +2' "process $held +gpuverbs" 'ok  GPU-[0-9a-f-]+ 0000:[0-9a-f:.]+ +mapped by nv_peer_mem'
check "the registrations end" ended_well
figures reachable_regions=0 bytes=0 registrations=2 revocations=0

# A file of the statistics stays open while the module is unloaded.
exec 8</sys/module/nv_peer_mem/statistics/reachable_regions
serves 0 stop 'unloaded'
check "what is open of the statistics can no longer be read" eval '! cat <&8 2>/dev/null'
exec 8<&-
serves 0 stop 'not loaded'
unload_gpu
load_gpu

# The statistics count revoked registrations, and failed registrations by their cause.
echo 'options nv_peer_mem persistent_api_support=0' >"$options"
serves 0 start 'loaded, version'
check "freed while registered" revoke
with fail 'get_pages ENOMEM 1' registers "a registration fails" ENOMEM
with fail 'get_pages ENOTSUPP 1' registers "a registration fails" EOPNOTSUPP
with fail 'get_pages EBUSY 1' registers "a registration fails" EBUSY
check "memory that is not the GPU's" gpuverbs probe --parts hole:64K --expect EFAULT
figures revocations=1 reachable_regions=0 bytes=0 failed_no_memory=1 failed_not_supported=1 failed_driver=1 failed_freed=0
serves 0 'status --all' 'client nv_mem +revocable' 'client nv_mem_nc +persistent' 'persistent_api_support +0' \
	'revocations +1' ' !  failed_no_memory +1' 'BAR1'
serves 0 restart 'unloaded' 'loaded, version'
figures failed_no_memory=0
serves 0 try-restart 'unloaded' 'loaded, version'
serves 0 stop 'unloaded'
serves 0 try-restart
serves 2 nonsense 'Usage:'
rm "$options"
