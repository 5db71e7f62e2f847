# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Functions for scenarios. They load modules, query the kernel and the host, and make checks. The
# results of the checks are counted.
set -uo pipefail

NVIDIA=/sys/kernel/debug/nvidia_lab
CORE=/sys/kernel/debug/peer_mem_lab
PEERS=/sys/kernel/mm/memory_peers
FAILURES=/tmp/failures
CHECKS=/tmp/checks
SPOILED=/tmp/spoiled
LAST=/tmp/last
ADDRESS=192.168.7.1

# word NAME DEFAULT: prints the value that the host gives as lab.NAME= on the kernel's command line.
word() {
	local text
	text=$(sed -n "s/^\(.* \)\?lab\.$1=\([^ ]*\).*/\2/p" /proc/cmdline)
	printf '%s\n' "${text:-$2}"
}

# The machine is plain, iommu, smmu, debug or real. tests/lab/kernels describes each machine.
MACHINE=$(word machine plain)

# The number of emulated ConnectX cards in this guest, and the RDMA device that scenarios use: a
# card, or else the software HCA.
NICS=$(word nics 0)
export HCA=rxe0
[ "$NICS" = 0 ] || HCA=mlx5_0

# The seed decides all random choices, so lab.seed= repeats a run.
SEED=$(word seed $((RANDOM << 15 | RANDOM)))

# report TEXT: sends TEXT to the host as a line of KTAP (tests/lab/run/ktap.py). The line is indented,
# because it is a part of the scenario's result.
report() {
	local text="$*"
	printf '  %s\n' "${text//$'\n'/; }" >&7
	printf '### %s\n' "$text"
}

# say TEXT: prints TEXT for the reader of the log.
say() { report "# say: $*"; }

# counted ok|"not ok" TEXT: reports a check with its number. The number is the length of a file. A
# variable would not do, because subshells also make checks and cannot change variables.
counted() {
	local made=''
	printf x >>"$CHECKS"
	read -r made <"$CHECKS" || true
	report "$1 ${#made} $2"
}
ok() { counted ok "$*"; }
fail() {
	printf '%s\n' "$*" >>"$FAILURES"
	counted 'not ok' "$*"
}

# use_seed: reports the seed, so that the scenario's random choices can be repeated.
use_seed() { report "# seed: $SEED"; }

# last REASON: makes this scenario the last scenario of the guest. spoil REASON: does the same, and
# also leaves out the checks at the end of the scenario.
last() { printf '%s\n' "$1" >"$LAST"; }
spoil() {
	last "$1"
	printf '%s\n' "$1" >"$SPOILED"
}

# check TEXT COMMAND...: runs COMMAND, and counts a check that passes if COMMAND succeeds.
check() {
	if "${@:2}"; then ok "$1"; else fail "$1 (failed: ${*:2})"; fi
}

# equal TEXT EXPECTED GOT: counts a check that passes if GOT is EXPECTED.
equal() {
	if [ "$2" = "$3" ]; then ok "$1"; else fail "$1: expected '$2', got '$3'"; fi
}

# ask QUESTION...: sends a question to the host, and prints the answer, which is one line.
ask() {
	local answer
	report "# ask: $*" >&2
	IFS= read -r answer <&7
	printf '%s\n' "$answer"
}

# value DIRECTORY NAME: prints the number of the counter NAME in the file `counters` of DIRECTORY.
value() { sed -n "s/^$2 //p" "$1/counters"; }

nvidia_count() { value "$NVIDIA" "$1"; }
core_count() { value "$CORE" "$1"; }

# remember: stores the driver's counters. grown NAME: prints how much the counter NAME has grown
# since remember.
remember() { cat "$NVIDIA/counters" >/tmp/before; }
grown() { echo $(($(nvidia_count "$1") - $(sed -n "s/^$1 //p" /tmp/before))); }

# statistic NAME: prints a figure of the module.
statistic() { cat "/sys/module/nv_peer_mem/statistics/$1"; }

# map_types: prints the map types of the pairs of a GPU and a device that the module knows.
map_types() { awk '!/^#/ { print $NF }' /proc/driver/nv_peer_mem/pairs; }

# wait_for TEXT COMMAND...: runs COMMAND again and again until it succeeds. Gives up after a minute
# of guest time.
wait_for() {
	local text=$1 tries=600
	shift
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || {
			fail "waited in vain for $text"
			return 1
		}
		sleep 0.1
	done
}

# seed_driver: seeds the simulated driver with $SEED, so that its random choices, such as layouts,
# can be repeated.
seed_driver() {
	echo "$SEED" >"$NVIDIA/seed"
	use_seed
}

# load_gpu [PARAMETER=VALUE...]: loads the simulated driver.
# shellcheck disable=SC2120 # measurements give one
load_gpu() {
	modprobe nvidia "$@"
	wait_for "the GPU" test -c /dev/nvidia-lab
}

# flavour: prints the flavour of the installed driver, open or closed.
flavour() {
	case $(modinfo -F license nvidia) in
	NVIDIA) echo closed ;;
	*GPL*) echo open ;;
	esac
}

# unload_gpu: unloads the driver. Also unloads nvidia_core, which the closed flavour needs.
unload_gpu() {
	local module
	for module in nvidia nvidia_core; do
		[ ! -d "/sys/module/$module" ] || rmmod "$module"
	done
}

# network: prints the name of the PCI network card.
network() { basename "$(echo /sys/bus/pci/drivers/e1000e/*/net/*)"; }

# load_rdma [PARAMETER=VALUE...]: loads the RDMA core and the driver of the RDMA device. The device is
# an emulated ConnectX if the guest has one, and otherwise a software HCA that uses the PCI network
# card. The parameters are for the driver's module.
# shellcheck disable=SC2120 # scenarios give one
load_rdma() {
	modprobe e1000e
	modprobe ib_uverbs
	if [ "$NICS" = 0 ]; then
		modprobe rdma_rxe "$@"
	else
		modprobe mlx5_ib "$@"
	fi
	start_rdma
}

# nic WORD...: asks the emulated ConnectX (tests/doubles/nic/control.py), and prints the answer. Fails if
# the device does not know the question.
nic() {
	local answer
	answer=$(ask nic 1 "$@")
	printf '%s\n' "$answer"
	[ "${answer%%:*}" != no ]
}

# start_rdma: starts the PCI network card, over which programs exchange their addresses, and the RDMA
# device, whose driver is loaded.
start_rdma() {
	ip address add "$ADDRESS/24" dev "$(network)"
	ip link set "$(network)" up
	[ "$NICS" != 0 ] || rdma link add rxe0 type rxe netdev "$(network)"
	wait_for "the link of $HCA" grep -q ACTIVE "/sys/class/infiniband/$HCA/ports/1/state"
}

# load_module [PARAMETER=VALUE...]: loads the installed module. unload_module: unloads the module.
# shellcheck disable=SC2120 # scenarios give the parameters
load_module() { modprobe nv_peer_mem "$@"; }
unload_module() { rmmod nv_peer_mem; }

# load_built NAME [PARAMETER=VALUE...]: loads the module that is in the directory NAME, which was
# built in another way.
load_built() {
	modprobe nv_peer_mem_callback
	insmod "/lib/nv_peer_mem/$1/nv_peer_mem.ko" "${@:2}"
}

# inbox_core: succeeds if the loaded RDMA core is the kernel's own.
inbox_core() { [ -d /sys/module/ib_core ] && [ ! -e /sys/module/ib_core/parameters/peer_generation ]; }

# load_neighbours: loads the driver and the RDMA core. load_all [PARAMETER=VALUE...]: loads the
# driver, the RDMA core and the module.
load_neighbours() {
	# shellcheck disable=SC2119
	load_gpu
	load_rdma
}

load_all() {
	load_neighbours
	load_module "$@"
}

# register RESULT: registers memory, and succeeds if the registration ends with RESULT.
# registers TEXT RESULT: checks that register succeeds.
register() { gpuverbs register --offset 0 --length 1M --expect "$1"; }
registers() { check "$1: $2" register "$2"; }

# revoke [OPTION...]: frees registered memory, and uses the memory again.
revoke() { gpuverbs revoke --from 0 --to 8M --length 300001 "$@"; }

# with KNOB VALUE COMMAND...: runs COMMAND while the file KNOB of the simulated driver has VALUE.
# with_core SWITCH COMMAND...: runs COMMAND while SWITCH of the RDMA core is on.
with() {
	local knob=$NVIDIA/$1 before=clear
	[ "$1" = fail ] || before=$(cat "$knob")
	# If the setting is refused, the function must return the failure here. The option -e has no
	# effect inside a check.
	echo "$2" >"$knob" || return
	"${@:3}"
	echo "$before" >"$knob"
}
with_core() {
	echo "$1 1" >"$CORE/switch" || return
	"${@:2}"
	echo "$1 0" >"$CORE/switch"
}

# as_nobody COMMAND...: runs COMMAND as a user without rights.
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"; }

# peer NAME FILE: prints a figure that the RDMA core keeps about a client.
peer() { cat "$PEERS/$1/$2"; }

# client_names: prints the registered clients, in alphabetical order.
client_names() { (cd "$PEERS" 2>/dev/null && echo *) || true; }

# The lab writes lines of its own into the kernel's log to mark places. The log is never cleared,
# because kernel_reports must see the whole log.
MARK='lab: looked at from here on'
KNOWN='lab: reports up to here are known'

# log_after LINE: prints the log after the last LINE, or the whole log if there is no LINE.
log_after() {
	dmesg | awk -v mark="$1" '
		substr($0, length($0) - length(mark) + 1) == mark { lines = 0; next }
		{ text[lines++] = $0 }
		END { for (i = 0; i < lines; i++) print text[i] }'
}

# mark_log: writes the mark into the log, so that expect_log looks only at later messages.
mark_log() { echo "$MARK" >/dev/kmsg; }

# know_reports: makes kernel_reports ignore the reports up to now, because they are expected.
know_reports() { echo "$KNOWN" >/dev/kmsg; }

# expect_log TEXT PATTERN: checks that a line of the kernel's log matches PATTERN.
expect_log() {
	log_after "$MARK" >/tmp/log
	check "$1" grep -qE "$2" /tmp/log
}

# hold COMMAND...: starts a command, and waits until the command prints `holding`. The command then
# waits for a line of input. Its output goes to /tmp/held.
hold() { hold_from holding "$@"; }

# hold_from LINE COMMAND...: like hold, but waits until the command prints LINE.
hold_from() {
	local line=$1
	shift
	coproc HELD { exec "$@"; }
	held=$HELD_PID
	# The shell closes a coprocess's descriptors when the coprocess ends, so the descriptors are
	# copied.
	exec {from_held}<&"${HELD[0]}" {to_held}>&"${HELD[1]}"
	eval "exec ${HELD[0]}<&- ${HELD[1]}>&-"
	: >/tmp/held
	until_said "$line"
}

until_holding() { until_said holding; }

until_said() {
	local line
	while read -r -u "$from_held" line; do
		printf '%s\n' "$line" | tee -a /tmp/held
		[ "$line" != "$1" ] || return 0
	done
	return 1
}

# go_on: lets the held command continue. Succeeds when the command waits again, or has ended.
go_on() {
	echo >&"$to_held" || return 1
	until_holding || true
}

# ended_well: lets the held command run to its end. Returns the exit status of the command.
ended_well() {
	exec {to_held}>&- {from_held}<&-
	wait "$held"
}

# said KEY: prints the value of the line KEY=... in the output of the held command.
said() { sed -n "s/^$1=//p" /tmp/held; }

# transfer_seen FROM TO LENGTH SEED WORDS...: transfers bytes by RDMA between two pieces of GPU
# memory. The host looks into the file behind the BAR while the memory is registered. Succeeds if
# the host finds the bytes.
transfer_seen() {
	local answer=no
	hold gpuverbs transfer --from "$1" --to "$2" --length "$3" --seed "$4" --hold "${@:5}" &&
		answer=$(ask pattern "$(said target_offset)" "$(said length)" "$4")
	ended_well && [ "$answer" = yes ]
}

# live_gauges DOUBLE...: prints how many objects of each kind exist in the doubles, as words
# "name=value". Kinds without an object are left out. Prints an error if a double has no counters.
live_gauges() { awk '/^live_/ && $2 != 0 { print $1 "=" $2 }' "${@/%//counters}" 2>&1; }

# violations DOUBLE...: prints the violations that the doubles recorded, or an error if there is no
# record.
violations() { cat "${@/%//violations}" 2>&1; }

# driver_at_rest: succeeds if no GPU memory is allocated, pinned or mapped any more.
driver_at_rest() { [ -z "$(live_gauges "$NVIDIA")" ]; }

# nothing_left TEXT: checks that the doubles have no objects any more, except the clients of the
# loaded module.
nothing_left() {
	equal "$1: nothing is left" '' "$(live_gauges "$NVIDIA" "$CORE" | grep -v live_clients | paste -sd' ')"
}

# The reports of the kernel's checkers and watchdogs begin with these words.
REPORTS='WARNING:|BUG:|Oops|general protection|rcu:.*stall|Call Trace|refcount_t'
REPORTS+='|KASAN:|UBSAN:|possible (circular|recursive) locking|inconsistent lock state'
REPORTS+='|sleeping function called|DMA-API:|list_(add|del) corruption|kmemleak: [0-9]+ new'
REPORTS+='|INFO: task .* blocked|lockup'

# kernel_reports: prints the reports in the kernel's log. Reports that are known are left out, and
# so are the lines of DMA-API from the boot.
kernel_reports() {
	log_after "$KNOWN" | awk -v reports="$REPORTS" '$0 ~ reports && !/DMA-API: (preallocated|debugging enabled)/'
}

# kmemleak_silent: succeeds if kmemleak reports no lost object. The function scans twice, with a
# pause in between, because kmemleak reports an object only if it is some seconds old and two scans
# in a row have found no pointer to it.
kmemleak_silent() {
	local scan=/sys/kernel/debug/kmemleak
	echo scan >"$scan" || return 1
	sleep 6
	echo scan >"$scan" || return 1
	cat "$scan" >/tmp/kmemleak
	cat /tmp/kmemleak
	[ ! -s /tmp/kmemleak ]
}

# check_clean: checks at the end of a scenario that the module can be unloaded, that the doubles
# have no remaining object and no violation, and that the log has no report.
check_clean() {
	local double doubles=("$NVIDIA" "$CORE")
	[ "$MACHINE" != real ] || doubles=("$CORE")
	! inbox_core || doubles=("$NVIDIA")
	rmmod nv_peer_mem 2>/dev/null
	equal "nv_peer_mem can be unloaded" '' "$(lsmod | grep '^nv_peer_mem ')"
	for double in "${doubles[@]}"; do
		check "counters of ${double##*/} are there" test -e "$double/counters"
		equal "no contract violation in ${double##*/}" '' "$(violations "$double")"
		equal "nothing left in ${double##*/}" '' "$(live_gauges "$double" | paste -sd' ')"
	done
	[ "$NICS" = 0 ] || equal "no violation that the emulated ConnectX has seen" '' "$(nic violations)"
	[ "$MACHINE" != debug ] || check "no memory is lost" kmemleak_silent
	equal "no warning in the kernel's log" '' "$(kernel_reports | head -n 3)"
}
