# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: nvpm compare reads what pdsh, clush, clush -b and Ansible collect from two machines, and names the odd one
. /lab/hosts.sh
load_neighbours
both_up
load_module
mkdir -p /run/sshd
/usr/sbin/sshd
barrier ssh

# compared COLLECTOR...: lets the collector run nvpm on both machines, compares the answers, and sets
# $code to the exit code of the comparison.
compared() {
	"$@" >/tmp/collected 2>/tmp/errors || :
	code=0
	nvpm compare </tmp/collected >/tmp/compared || code=$?
}

# collectors: compares the output of each tool. Ansible counts an exit code other than 0 as a failure.
collectors() {
	export PDSH_RCMD_TYPE=ssh
	printf 'left ansible_connection=ssh\nright ansible_connection=ssh\n' >/tmp/inventory
	for tool in "pdsh -w left,right" "clush -w left,right" "clush -b -w left,right" \
		"ansible all -i /tmp/inventory -m raw -a"; do
		# shellcheck disable=SC2086 # a tool and its options are words
		case $tool in
		ansible*) compared $tool "nvpm status --json" ;;
		*) compared $tool nvpm status --json ;;
		esac
		"$@" "$tool"
	done
}

# alike TOOL: checks that both machines are there, and are alike.
alike() {
	cat /tmp/compared /tmp/errors
	equal "$1: both are alike" "2 nodes: 2 are alike. 0" "$(head -n 1 /tmp/compared) $code"
}

# odd TOOL: checks that the machine without the module is named, with the fact in which it differs.
odd() {
	cat /tmp/compared
	equal "$1: exit code" 1 "$code"
	check "$1: one machine differs" grep -q '1 differ' /tmp/compared
	check "$1: the state of the module is named" grep -q 'module, state: not loaded' /tmp/compared
}

# selftests: compares the statuses of both machines together with the results of their selftests.
selftests() {
	compared sh -c 'pdsh -w left,right nvpm status --json; pdsh -w left,right nvpm selftest --json'
	alike "with selftests"
	nvpm compare --json </tmp/collected >/tmp/compared
	check "the result of the pair is compared" \
		grep -q '"selftest, GPU 0 with rxe0 by pointer": "passed"' /tmp/compared
}

left collectors alike
barrier alike
left selftests
barrier selftests
right unload_module
barrier unloaded
left collectors odd
barrier odd
left unload_module
