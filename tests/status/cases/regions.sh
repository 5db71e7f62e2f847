# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What `nvpm regions` makes of the module's list, and what `stop` says of it.

# listed EXIT_CODE [OPTION]: leaves what it says in $scratch/text.
listed() {
	local code=0
	dash "$top/init.d/regions" ${2+"$2"} >"$scratch/text" 2>&1 || code=$?
	if [ "$code" = "$1" ]; then ok; else fail "regions ${2-}: exit code $code, not $1: $(head -n 20 "$scratch/text")"; fi
}

# line TEXT: that it says so; however many spaces are between two words.
line() {
	if tr -s ' ' <"$scratch/text" | grep -xF -- "$1" >"$scratch/found"; then ok; else fail "no line '$1' in: $(head -n 20 "$scratch/text")"; fi
}

# value EXPRESSION EXPECTED: of the JSON.
value() {
	local got
	got=$(python3 -c "import json; j = json.load(open('$scratch/text')); print(($1))") || got=$?
	if [ "$got" = "$2" ]; then ok; else fail "$1 is '$got', not '$2'"; fi
}

heading='# process started age address length client state device name'
list=/proc/driver/nv_peer_mem/regions

# Older modules have no list; others may not be there at all.
listed 1
line "nvpm regions: the nv_peer_mem that is loaded is older than this command and keeps no list. When nobody uses it: /etc/init.d/nv_peer_mem restart"
put $list "$heading"
listed 0
line "no GPU memory is registered"
listed 0 --json
value "j['schema'], j['registrations'], j['processes'], j['bytes']" "(1, [], [], 0)"
listed 0 --holders
if [ ! -s "$scratch/text" ]; then ok; else fail "holders of nothing"; fi
listed 2 --all

# One that runs, one whose number is another's now, one that has ended; in no order.
put /proc/42/stat '42 (a) b S 1) S 1 42 42 0 -1 4194304 100 0 0 0 0 0 0 0 20 0 1 0 1234 0 0'
put /proc/7/stat '7 (other) S 1 7 7 0 -1 4194304 100 0 0 0 0 0 0 0 20 0 1 0 999 0 0'
put $list "$heading
1000 5 90000 0x7f0000000000 65537 nv_mem_fixed pinned - gone
42 1234 119 0x7f1230000000 65536 nv_mem mapped 0000:04:00.0 a\\040b\\033[31m\"\\134\\303\\251
7 998 7199 0x7f1231000000 1099511627776 nv_mem_revocable revoked 0001:a1:1f.7 same
42 1234 300 0x7f1232000000 1536 nv_mem mapped 0000:04:00.0 a\\040b\\033[31m\"\\134\\303\\251"
listed 0
line 'process 7 (same, which has ended): 1 registration of GPU memory, 1 TiB'
line ' 0x7f1231000000 1 TiB 119 min nv_mem_revocable revoked 0001:a1:1f.7'
line 'process 42 (a b\033[31m"\134\303\251): 2 registrations of GPU memory, 65.5 KiB'
line ' 0x7f1230000000 64 KiB 119 s nv_mem mapped mlx5_0 (0000:04:00.0)'
line ' 0x7f1232000000 1.5 KiB 5 min nv_mem mapped mlx5_0 (0000:04:00.0)'
line ' 0x7f0000000000 64.0 KiB 25 h nv_mem_fixed pinned -'
line 'all: 4 registrations, 1.0 TiB'
listed 0 --holders
line 'process 42 (a b\033[31m"\134\303\251) has 2 registrations of GPU memory, 65.5 KiB'
listed 0 --json
value "[p['process'] for p in j['processes']]" "[7, 42, 1000]"
value "[p['running'] for p in j['processes']]" "[False, True, False]"
value "[p['bytes'] for p in j['processes']], j['bytes']" "([1099511627776, 67072, 65537], 1099511760385)"
value "j['registrations'][2]['command']" 'a b\033[31m"\134\303\251'
value "[(r['address'], r['length'], r['age'], r['client'], r['state'], r['pci'], r['device']) for r in j['registrations']][1]" \
	"('0x7f1232000000', 1536, 300, 'nv_mem', 'mapped', '0000:04:00.0', 'mlx5_0')"
value "[r['device'] for r in j['registrations']], j['registrations'][3]['pci']" "([None, 'mlx5_0', 'mlx5_0', None], None)"

# A hundred thousand.
awk -v heading="$heading" 'BEGIN {
	print heading
	for (i = 0; i < 100000; i++)
		printf "%d 5 %d 0x%x 65536 nv_mem mapped 0000:04:00.0 a\\040program\n", 100 + i % 50, i, i * 65536
}' >"$root$list"
listed 0
line 'process 149 (a program, which has ended): 2000 registrations of GPU memory, 125 MiB'
line 'all: 100000 registrations, 6.1 GiB'
if [ "$(grep -c '^  0x' "$scratch/text")" = 100000 ]; then ok; else fail "not all of a hundred thousand are listed"; fi
listed 0 --json
value "len(j['registrations']), len(j['processes']), j['bytes']" "(100000, 50, 6553600000)"

gone /sys/module/nv_peer_mem /proc/driver
listed 3
line "nvpm regions: nv_peer_mem is not loaded: no GPU memory is registered through it. To load it: /etc/init.d/nv_peer_mem start"
