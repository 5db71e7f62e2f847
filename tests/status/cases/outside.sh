# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Text from outside: names that processes give themselves, and what others have
# written. Nothing of it steers a terminal, breaks a line or a field, or is no UTF-8.

# cleaned AWK: what becomes of such text, with that awk.
cleaned() {
	mkdir -p "$scratch/awk"
	ln -sf "$(command -v "$1")" "$scratch/awk/awk"
	# shellcheck disable=SC2016 # for the shell inside
	PATH=$scratch/awk:$PATH dash -c '. "$1/init.d/clean.sh"
		clean_text "$2"; printf "one\ttwo\033\000\n\177\n" | clean_table; printf "one\ttwo\n" | clean' sh "$top" "$2"
}
evil=$'a\e[31m\tb\nc\x7f d\xff\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xed\xa0\x80\xc2\x9b\xe2\x80\xae\xc3'
good=$'a?[31m?b?c? d?\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80?????????'
for awk in mawk gawk original-awk; do
	command -v $awk >/dev/null || continue
	if [ "$(cleaned $awk "$evil" | od -c)" = "$(printf '%s\none\ttwo??\n?\none?two\n' "$good" | od -c)" ]; then ok; else
		fail "$awk: $(cleaned $awk "$evil" | od -c)"; fi
done

# A process with that name, in status and in what stop prints.
put /sys/module/nv_peer_mem/statistics/regions 1
put /proc/42/comm "$evil"
mkdir -p "$root/proc/42/fd"
ln -s /dev/infiniband/uverbs0 "$root/proc/42/fd/4"
look 0
only_these ''
says use "process 42" none "$good has an RDMA device open"
# shellcheck disable=SC2016 # for the shell inside
who=$(dash -c '. "$1/init.d/clean.sh"; . "$1/init.d/holders.sh"; holders' sh "$top")
if [ "$who" = "42 $good" ]; then ok; else fail "stop names '$who'"; fi
measure

# A file that has fields and sequences in its line.
put /sys/module/nv_peer_mem/parameters/peerdirect_support $'0\e]0;title\a\tbad\tvalue'
look 0
only_these ''
says module peerdirect_support none '0?]0;title??bad?value'
