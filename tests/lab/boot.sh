# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# A guest from QEMU's start to its end, and what host and guest say to each
# other over a virtio serial port (tests/guest/lib.sh has the other end).
#
# A guest is a machine of the table `kernels`, and that is
#   plain  nothing else
#   iommu  behind an IOMMU that translates the devices' addresses
#   smmu   the same on arm64
#   debug  a kernel with KASAN, lockdep, kmemleak and the like

LAB_ACCEL=${LAB_ACCEL:-tcg}

# LAB_THREADS: how the emulator runs a guest's two processors: `single` takes turns in one
# thread, `multi` has a thread for each. With as many threads as the machine has
# processors, `multi` is the better race; with more of them, a guest's processor
# spins for another one that does not run, and everything takes twice as long.
LAB_THREADS=${LAB_THREADS-}

# LAB_CLOCK: what the guest's time is.
#   host           the host's
#   instructions   a nanosecond for each instruction that its processors execute,
#                  and no time at all while they wait: for measurements
LAB_CLOCK=${LAB_CLOCK:-host}

# The guest's processors.
LAB_CPUS=${LAB_CPUS:-2}

# Megabytes of simulated GPU memory, and of the guest's own.
LAB_GPU_MB=128
LAB_GUEST_MB=2048

# A guest that says nothing for this long (seconds) is taken for hung.
LAB_TIMEOUT=${LAB_TIMEOUT:-240}

# A guest's network: by default one that ends at its own machine (hosts.sh has another).
guest_net=user,restrict=on
guest_mac=52:54:00:12:34:56

# boot_layer: $initramfs and $vmlinux of the kernel on top of the stack.
boot_layer() {
	layer_args=("$kver")
	layer boot "$stack" "initramfs" "$lab/initramfs-init"
	initramfs=$LAB_CACHE/layers/$reply/root/boot/lab-initramfs
	vmlinux=$LAB_CACHE/layers/${stack%%:*}/root/boot/vmlinux-$kver
}

# guest_devices RUN: what every guest has, in the array `devices`.
guest_devices() {
	truncate -s "${LAB_GPU_MB}M" "$1/bar"
	# shellcheck disable=SC2054 # QEMU's options have commas
	devices=(
		-fsdev "local,id=layers,path=$LAB_CACHE/layers,security_model=none,readonly=on,multidevs=remap"
		-device virtio-9p-pci,fsdev=layers,mount_tag=layers
		-fsdev "local,id=guest,path=$top/tests/guest,security_model=none,readonly=on"
		-device virtio-9p-pci,fsdev=guest,mount_tag=guest
		-object "memory-backend-file,id=bar,mem-path=$1/bar,size=${LAB_GPU_MB}M,share=on"
		-device ivshmem-plain,memdev=bar
		-netdev "$guest_net,id=net" -device "e1000e,netdev=net,mac=$guest_mac"
		-device virtio-serial-pci
		-chardev "pipe,id=lab,path=$1/lab" -device virtserialport,chardev=lab,name=lab
	)
}

# qemu_command RUN WORDS: the guest's command line in the array `qemu`, with
# its files in the directory RUN and WORDS added to the kernel's parameters.
qemu_command() {
	if is_arm64; then qemu_arm64 "$@"; else qemu_x86 "$@"; fi
}

qemu_x86() {
	local devices run=$1 words="lab.machine=$machine_is lab.ground=$kground lab.driver=$kdriver lab.name=$machine lab.layers=$stack $2" cpu=max,la57=off iommu=()
	local accel=$LAB_ACCEL clock=()
	case $machine_is in
	iommu)
		# Before the devices that it translates for. Interrupts are left
		# as they are on the other machines.
		iommu=(-device "intel-iommu,intremap=off,caching-mode=on")
		words="intel_iommu=on iommu=nopt iommu.strict=1 $words"
		;;
	debug)
		# Not the kernel's own suites, which run at each boot.
		words="kunit.filter_glob=nv_peer_mem* $words"
		;;
	esac
	case $LAB_ACCEL in
	tcg) accel+=,thread=${LAB_THREADS:-single} ;;
	kvm)
		[ -w /dev/kvm ] || die "LAB_ACCEL=kvm needs /dev/kvm, which is not there: leave it out to emulate."
		cpu=host
		;;
	*) die "LAB_ACCEL=$LAB_ACCEL is not known: tcg (the default) or kvm." ;;
	esac
	case $LAB_CLOCK in
	host) words="tsc=unstable clocksource=hpet $words" ;;
	instructions)
		[ "$LAB_ACCEL" = tcg ] || die "instructions can be counted in emulation only: leave LAB_ACCEL out."
		clock=(-icount "shift=0,sleep=off")
		words="tsc=reliable clocksource=tsc $words"
		;;
	*) die "LAB_CLOCK=$LAB_CLOCK is not known: host (the default) or instructions." ;;
	esac
	guest_devices "$run"
	# no_timer_check: on a busy host the emulated timer may come too late for
	# the kernel's patience at boot, which ends in a panic.
	# shellcheck disable=SC2054 # QEMU's options have commas
	qemu=(
		qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot
		-machine q35 -accel "$accel" -cpu "$cpu" -smp "$LAB_CPUS" "${clock[@]}" -m "$LAB_GUEST_MB"
		-kernel "$vmlinux" -initrd "$initramfs"
		-append "console=ttyS0 loglevel=5 log_buf_len=4M panic=-1 mitigations=off cryptomgr.notests=1 nokaslr no_timer_check $words"
		"${iommu[@]}" "${devices[@]}"
	)
	# Only whole systems have a disk (system.sh). Nobody wants it after a crash.
	# shellcheck disable=SC2054 # QEMU's options have commas
	[ ! -e "$run/disk" ] ||
		qemu+=(-drive "if=none,id=disk,format=raw,cache=unsafe,file=$run/disk" -device virtio-blk-pci,drive=disk)
}

# new_run NAME: a directory for a guest's run, in $run.
new_run() {
	new_dir run "$1"
	run=$reply
	furnish_run
}

furnish_run() {
	mkfifo "$run/lab.in" "$run/lab.out"
	: >"$run/said"
}

# run_guest NAME [WORDS [SCENARIOS]]: boots a guest that runs the scenario NAME, or
# SCENARIOS (names with commas: run_shared), shows what it says, answers what it asks. WORDS are
# more parameters for the kernel. Leaves the run's directory in $run (console,
# BAR) and what was said in $run/said. Fails if a scenario failed or never ended.
run_guest() {
	new_run "$1"
	boot_guest "lab.scenario=${3:-$1} ${2-}"
}

# boot_guest WORDS: one boot. Succeeds if the scenario held; 2 if the guest went
# down to be booted again.
boot_guest() {
	local pid rc=0
	qemu_command "$run" "$1"
	setpriv --pdeathsig KILL "${qemu[@]}" -serial chardev:console \
		-chardev "file,id=console,path=$run/console,append=on" </dev/null >>"$run/qemu.log" 2>&1 &
	pid=$!
	printf '%s\n' "$pid" >"$run/pid"
	converse || rc=$?
	kill "$pid" 2>/dev/null || true
	wait "$pid" 2>/dev/null || true
	return "$rc"
}

# converse: host's end of the conversation, until the guest says `end` or has
# restarted, which ends QEMU.
converse() {
	local line part='' word rest ended=1 rebooting='' heard=$SECONDS limit=$LAB_TIMEOUT
	# Checkers take their time.
	[ "$machine_is" != debug ] || limit=$((limit * 2))
	# Of a guest that others share: run_shared's list.
	[ -n "${left+is}" ] || local left=()
	# Opened for both directions, or opening would wait for QEMU; so the pipe
	# has no end when QEMU has gone, and that is looked at every second.
	exec {to}<>"$run/lab.in" {from}<>"$run/lab.out"
	while :; do
		if ! IFS= read -rt 1 -u "$from" line; then
			# What came of a line before the second was over belongs to it.
			part+=$line
			if ! kill -0 "$pid" 2>/dev/null; then
				if [ "$rebooting" ] && restarted; then ended=2; fi
				if killed; then ended=0; fi
				break
			fi
			# Nobody is left to tell: this program was killed above us.
			kill -0 $$ 2>/dev/null || break
			[ $((SECONDS - heard)) -lt "$limit" ] || break
			continue
		fi
		heard=$SECONDS
		line=$part$line
		part=
		printf '%s\n' "$line" >>"$run/said"
		IFS=' ' read -r word rest <<<"$line"
		case $word in
		say) say "${scenario_label:-guest}" "$rest" ;;
		fail) say "${scenario_label:-guest}" "fail: $rest" ;;
		ok) [ -z "${LAB_VERBOSE-}" ] || say "${scenario_label:-guest}" "ok: $rest" ;;
		ask)
			answer "$rest" >&"$to"
			heard=$SECONDS
			;;
		reboot) rebooting=yes ;;
		end)
			finished "$rest" && ended=0
			if [ "$ended" != 0 ] || [ "${#left[@]}" = 0 ]; then break; fi
			shared_passed
			[ "${#left[@]}" -gt 0 ] || break
			ended=1
			;;
		esac
	done
	exec {to}>&- {from}>&-
	[ "$ended" != 1 ] || grep -q '^end ' "$run/said" ||
		printf 'fail the guest ended or hung before its scenario did\n' >>"$run/said"
	return "$ended"
}

# restarted: whether the guest went down as a machine should: a panic ends QEMU
# too, and nobody in the guest could tell.
restarted() {
	tail -n 3 "$run/console" | grep -q 'reboot: Restarting system' &&
		! grep -E '^\[ *[0-9.]+\] .*(BUG:|WARNING:|Oops|Call Trace|Kernel panic)' "$run/console"
}

# killed: whether the guest was killed because another one asked for that (hosts.sh),
# and held until then.
killed() { [ -e "$run/killed" ] && ! grep -q '^fail ' "$run/said"; }

# finished "STATUS CHECKS": whether the scenario held, and every check that the
# guest counted was heard of.
finished() {
	local status checks heard
	read -r status checks <<<"$1"
	heard=$(grep -cE '^(ok|fail) ' "$run/said")
	[ "$heard" = "$checks" ] ||
		printf 'fail the guest reported %s checks, %s were heard\n' "$checks" "$heard" >>"$run/said"
	[ "$status" = 0 ] && [ "$heard" = "$checks" ]
}

# answer QUESTION: one line back to the guest.
answer() {
	local question words
	read -r question words <<<"$1"
	case $question in
	pattern) compare_bar "$words" ;;
	tell | hear | kill) "host_$question" "$words" ;;
	*) printf 'no: the host does not know what "%s" is\n' "$question" ;;
	esac
}

# compare_bar "OFFSET LENGTH SEED": whether the bytes in the file behind the
# GPU's BAR are the pattern that SEED makes: seen from outside the guest.
compare_bar() {
	local offset length seed scratch=$run/pattern
	read -r offset length seed <<<"$1"
	mkdir -p "$scratch"
	if in_layers "$stack" "$scratch" gpuverbs pattern --seed "$seed" --length "$length" |
		cmp -s - <(tail -c "+$((offset + 1))" "$run/bar" | head -c "$length"); then
		printf 'yes\n'
	else
		printf 'no\n'
	fi
	rm -rf "$scratch"
}
