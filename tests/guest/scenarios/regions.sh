# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: root can list each registration, with whose it is, and no other user can
list=/proc/driver/nv_peer_mem/regions
regions=(nvpm regions)
load_neighbours

# listed TEXT [LINE...]: checks the lines of the list. Each LINE has the columns length, client,
# state and device.
listed() { equal "$1" "$(printf '%s\n' "${@:2}")" "$(awk '!/^#/ { print $5, $6, $7, $8 }' "$list" | sort)"; }

refused() { ! "$@" 2>/tmp/said; }

# incapable COMMAND...: runs COMMAND as root without CAP_SYS_ADMIN, as in most containers.
incapable() { setpriv --bounding-set -sys_admin --inh-caps -sys_admin -- "$@"; }

# RDMA goes through this PCI device.
nic=$(basename "$(readlink -f "/sys/class/net/$(cat /sys/class/infiniband/rxe0/parent)/device")")

# The device must not be on bus 0. If it were, a list that lacks the number of the bus would look
# right.
check "which is not on the first bus of PCI" test "${nic#*:00:}" = "$nic"

load_module
equal "only root reads it" "400 root" "$(stat -c '%a %U' "$list")"
check "nobody does not" refused as_nobody cat "$list"
check "nor does the command" refused as_nobody "${regions[@]}"
check "which says why" grep -q 'only root can read' /tmp/said
check "root without CAP_SYS_ADMIN does not either" refused incapable cat "$list"
check "by the kernel's decision" grep -q 'Operation not permitted' /tmp/said
check "nor does the command then" refused incapable "${regions[@]}"
check "which says what is lacking" grep -q 'CAP_SYS_ADMIN' /tmp/said
listed "nothing is registered"
hold gpuverbs register --offset 0 --length 300001 --kept 3
listed "three registrations, each a line" "300001 nv_mem mapped $nic" "300001 nv_mem mapped $nic" "300001 nv_mem mapped $nic"
equal "of the process" "$held $(awk '{ print $22 }' "/proc/$held/stat") gpuverbs" \
	"$(awk '!/^#/ { print $1, $2, $9 }' "$list" | sort -u)"
equal "as old as the scenario at most" '' "$(awk -v most="$SECONDS" '!/^#/ && $3 > most' "$list")"
"${regions[@]}" | tee /tmp/said
who="process $held \(gpuverbs, user root\)"
check "the command sums it up" grep -qE "^$who: 3 registrations of GPU memory, 878.9 KiB" /tmp/said
check "and names the RDMA device" grep -qE " nv_mem +mapped +.*\($nic\)|mapped +$nic" /tmp/said
/etc/init.d/nv_peer_mem stop >/tmp/said 2>&1 || true
check "stop says who is in the way" grep -qE "$who has 3 registrations of GPU memory" /tmp/said
check "all ended well" ended_well
listed "nothing is left of it"
unload_module
check "the list goes with the module" test ! -e /proc/driver/nv_peer_mem

load_module persistent_api_support=0
hold gpuverbs inherit --offset 0 --length 64K --steps hold,owner-free,hold,owner-dereg,hold
listed "one that can be revoked" "65536 nv_mem mapped $nic"
go_on
listed "its memory is freed" "65536 nv_mem revoked $nic"
go_on
listed "deregistered"
check "all ended well" ended_well
hold gpuverbs inherit --offset 0 --length 64K --steps heir-dereg,hold,owner-free,hold
listed "an orphan" "65536 nv_mem orphaned $nic"
go_on
listed "and freed"
check "all ended well" ended_well

# This process has a name with a code that changes the colour of a terminal.
cp "$(command -v gpuverbs)" "/tmp/$(printf 'a\033[31m b')"
hold "/tmp/$(printf 'a\033[31m b')" register --offset 0 --length 64K --kept 1
equal "a name is one plain word" 'a\033[31m\040b' "$(awk '!/^#/ { print $9 }' "$list")"
check "all ended well" ended_well

# The list is read while processes make and end registrations. A registration that exists all the
# time must be in the list once. A page of the list has 63 lines, and there are four pages. DMA-API
# debug tolerates at most seven mappings of the same memory, so each of forty processes has its own
# memory.
mkfifo /tmp/gate
keepers=()
exec 8<>/tmp/gate
for n in $(seq 40); do
	gpuverbs register --offset $((n << 16)) --length 64K --kept 5 </tmp/gate >"/tmp/held.$n" 8>&- &
	keepers+=($!)
done
stay=200
all_hold() { [ "$(grep -lx holding /tmp/held.* | wc -l)" = 40 ]; }
wait_for "forty processes" all_hold
gpuverbs register --offset 8M --length 128K --cycles 1000 >/tmp/cycles 8>&- &
cycles=$!
missed=0 reads=0
while kill -0 "$cycles" 2>/dev/null; do
	[ "$(awk '$5 == 65536 { print $4 }' "$list" | wc -l)" = "$stay" ] || missed=$((missed + 1))
	reads=$((reads + 1))
done
check "registering went on meanwhile" wait "$cycles"
check "it was read meanwhile" test "$reads" -gt 0
equal "lists in which something was missing, or twice" 0 "$missed"
exec 8>&-
for n in "${!keepers[@]}"; do wait "${keepers[$n]}" || fail "process $n of those that kept registrations"; done
listed "none of them is left"

if [ "$MACHINE" = plain ]; then
	# Three thousand lines have 240 KB, so every reader reads the list in several pieces. The
	# pins are persistent, because the simulated driver searches a list of revocable pins.
	unload_module
	load_module
	many=3000
	hold gpuverbs register --offset 0 --length 64K --kept $many
	equal "three thousand lines" $many "$(grep -vc '^#' "$list")"
	equal "and in the command" $many "$("${regions[@]}" | grep -c '^  0x')"
	check "all ended well" ended_well
	listed "none of them is left"
fi
