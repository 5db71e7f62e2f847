# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Functions for scenarios with processes that keep memory registered (cuda/holder.py), and with what
# nvpm used says of them.

# held NAME WORD...: starts holder.py in the background, by the command $before. $number is its
# process then.
before=(env)
held() {
	"${before[@]}" python3 -B /lab/cuda/holder.py "${@:2}" </dev/null >"/tmp/$1.held" 2>&1 &
	wait_for "the holder $1" grep -q '^process=' "/tmp/$1.held" || cat "/tmp/$1.held"
	number=$(sed -n 's/^process=//p' "/tmp/$1.held")
}

# end_all: ends all holders, and waits until the kernel has ended what they have left.
end_all() {
	pkill -KILL -f /lab/cuda/holder.py || true
	wait_for "the holders' ends" eval '! pgrep -f /lab/cuda/holder.py'
	wait_for "the end of their memory" driver_at_rest
}

# look CODE [COMMAND...]: runs nvpm used --json by COMMAND, and checks its exit code.
look() {
	local code=0
	"${@:2}" nvpm used --json >/tmp/used.json 2>/tmp/errors || code=$?
	cat /tmp/errors
	sed -n 's/.*"answer": \("[^"]*"\).*/\1/p' /tmp/used.json
	equal "exit code" "$1" "$code"
}

# says PATTERN [COMMAND...]: checks the first line of nvpm used.
says() {
	"${@:2}" nvpm used >/tmp/said 2>&1 || true
	cat /tmp/said
	head -n 1 /tmp/said >/tmp/first
	check "nvpm used says: $1" grep -qE -- "$1" /tmp/first
}

# verdict PROCESS: prints what nvpm used says of a process, and the bytes by way.
verdict() {
	python3 -c '
import json, sys
rows = [row for row in json.load(open("/tmp/used.json"))["processes"] if row["process"] == int(sys.argv[1])]
memory = [(one["way"], one["bytes"]) for row in rows for one in row["memory"]]
print("; ".join([*sorted({row["verdict"] for row in rows}), *(f"{way} {number}" for way, number in memory)]))' "$1"
}

no_gpu_memory() { ! verdict "$1" | grep -q 'GPU memory'; }

# of NAME PROCESS VERDICT [WAY MIB...]: checks what nvpm used says of a process: the verdict, and the
# bytes that are registered by each way.
of() {
	local name=$1 process=$2 expected=$3
	shift 3
	while [ $# -gt 1 ]; do
		expected+="; $1 $(($2 << 20))"
		shift 2
	done
	equal "$name" "$expected" "$(verdict "$process")"
}
