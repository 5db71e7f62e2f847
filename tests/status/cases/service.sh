# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What udev and openibd have the service do, and nvpm, with a systemctl that only notes.

mkdir -p "$root/run/systemd/system" "$scratch/bin"
cat >"$scratch/bin/systemctl" <<'SYSTEMCTL'
#!/bin/sh
case " $* " in
*" is-active "*)
	cat "$NVPM_SYSROOT/unit"
	# A start that ends while it is asked about.
	[ ! -e "$NVPM_SYSROOT/starting" ] || mkdir -p "$NVPM_SYSROOT/sys/module/nv_peer_mem"
	;;
*" is-enabled "*) [ -e "$NVPM_SYSROOT/enabled" ] ;;
*) echo "$*" >>"$NVPM_SYSROOT/asked" ;;
esac
SYSTEMCTL
chmod 755 "$scratch/bin/systemctl"

# asks WHAT EVENT: what systemd is asked to do on an event; nothing if WHAT is empty.
asks() {
	local got
	rm -f "$root/asked"
	PATH="$scratch/bin:$PATH" dash "$top/init.d/module-event" "$2" || fail "module-event $2"
	got=$(sed -n 's/.* --job-mode=fail \(.*\) nv_peer_mem.service$/\1/p' "$root/asked" 2>/dev/null || true)
	if [ "$got" = "$1" ]; then ok; else fail "$2: asked for '$got', not '$1'"; fi
}

put /unit inactive
put /enabled ''
asks '' arrived # it is loaded
gone /sys/module/nv_peer_mem
asks start arrived
put /unit active
asks restart arrived # an old systemd's unit, which was skipped
put /starting ''
asks '' arrived # what it began has loaded the module
gone /starting
gone /sys/module/nv_peer_mem
asks stop gone
put /unit deactivating
asks '' gone # a restart
put /unit inactive
asks '' gone
put /etc/infiniband/nv_peer_mem.conf 'ONBOOT=no'
asks '' arrived
put /etc/infiniband/nv_peer_mem.conf 'ONBOOT=yes'
gone /enabled
asks '' arrived
put /enabled ''
gone /sys/module/ib_core
asks '' arrived
put /sys/module/ib_core/refcnt 0
gone /sys/module/nvidia
asks '' arrived
put /sys/module/nvidia/version 590.1
gone /run
asks '' arrived

# The hooks: made where none is there, and only those taken away.
hook=$root/etc/infiniband/pre-stop-hook.sh
hooks() { dash "$top/init.d/openibd-hook" "$@" >"$scratch/said" 2>&1 || fail "openibd-hook $*: $(cat "$scratch/said")"; }
hooks install
if [ -L "$hook" ] && [ -L "${hook/pre-stop/post-start}" ] && [ ! -s "$scratch/said" ]; then ok; else fail "no hooks"; fi
hooks install
if [ ! -s "$scratch/said" ]; then ok; else fail "a second time: $(cat "$scratch/said")"; fi
hooks remove
if [ ! -L "$hook" ] && [ ! -L "${hook/pre-stop/post-start}" ]; then ok; else fail "hooks are left"; fi
put /etc/infiniband/pre-stop-hook.sh '#!/bin/sh'
hooks install
if grep -q 'pre-stop-hook.sh is yours.*openibd-hook pre-stop$' "$scratch/said"; then ok; else fail "not said: $(cat "$scratch/said")"; fi
hooks remove
if [ "$(cat "$hook")" = '#!/bin/sh' ]; then ok; else fail "an administrator's hook was touched"; fi

# What the service does is noted.
put /etc/init.d/nv_peer_mem "#!/bin/sh
echo \"\$1\" >>$root/did"
chmod 755 "$root/etc/init.d/nv_peer_mem"
mkdir -p "$root/run" "$root/proc/42/fd"
did() { if [ "$(paste -sd' ' "$root/did" 2>/dev/null)" = "$1" ]; then ok; else fail "did '$(cat "$root/did")', not '$1'"; fi; }
hooks pre-stop
did '' # it is not loaded
hooks post-start
did ''
put /sys/module/nv_peer_mem/version 2.0.0
ln -s /dev/infiniband/uverbs0 "$root/proc/42/fd/3"
hooks pre-stop
did '' # openibd will refuse
rm "$root/proc/42/fd/3"
hooks pre-stop
did stop
hooks post-start
did 'stop start'
hooks post-start
did 'stop start'

# nvpm
nvpm() { code=0; dash "$top/init.d/nvpm" "$@" >"$scratch/said" 2>&1 || code=$?; }
ends() { if [ "$code" = "$1" ] && grep -q -- "$2" "$scratch/said"; then ok; else fail "nvpm: exit code $code: $(cat "$scratch/said")"; fi; }
new_machine
nvpm status
ends 0 'nv_peer_mem: running'
nvpm status --json
ends 0 '"state": "running"'
nvpm help
ends 0 'Usage: nvpm COMMAND'
nvpm
ends 2 'Usage: nvpm COMMAND'
nvpm staus
ends 2 "there is no command 'staus'"
mkdir -p "$scratch/alone"
cp "$top/init.d/nvpm" "$top/init.d/conf.sh" "$scratch/alone/"
code=0
dash "$scratch/alone/nvpm" regions >"$scratch/said" 2>&1 || code=$?
ends 127 "'regions' is not installed"
completed() {
	# shellcheck disable=SC2016 # for the shell inside
	bash -c '. "$1"; COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2)); _nvpm; echo "${COMPREPLY[*]}"' bash "$top/init.d/completions/nvpm" "$@"
}
if [ "$(completed nvpm s)" = 'status selftest' ]; then ok; else fail "completion of a command: $(completed nvpm s)"; fi
if [ "$(completed nvpm status --p)" = --prometheus ]; then ok; else fail "completion of an option"; fi
