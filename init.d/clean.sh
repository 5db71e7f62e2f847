# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Makes text from outside safe to print. A process chooses its own name: that may
# hold escape sequences for root's terminal, line ends, the separators of a table,
# or bytes that are no UTF-8 and no JSON. Each such byte becomes a question mark.
#
#   clean         a filter: each line stays a line, nothing else in it does harm
#   clean_table   the same, with the tabs between fields kept
#   clean_text T  prints T as one clean line, whatever is in it

clean() {
	clean_table | tr '\011' '?'
}

# Control bytes first, for not every awk takes a NUL; then what is no UTF-8, and
# what is, but steers: the controls U+0080 to U+009F, line ends, and marks that
# are invisible or turn the direction of writing.
clean_table() {
	LC_ALL=C tr '\000-\010\013-\037\177' '?' | LC_ALL=C awk '
		BEGIN {
			more = "[\200-\277]"
			wanted = "^([\302-\337]" more "|\340[\240-\277]" more "|[\341-\354\356\357]" more more \
				"|\355[\200-\237]" more "|\360[\220-\277]" more more "|[\361-\363]" more more more \
				"|\364[\200-\217]" more more ")"
			steers = "^(\302[\200-\237]|\330\234|\342\200[\213-\217\250-\256]|\342\201[\240-\257]|\357\273\277)"
		}
		{
			done = ""
			while (match($0, /[\200-\377]/)) {
				done = done substr($0, 1, RSTART - 1)
				rest = substr($0, RSTART)
				size = match(rest, wanted) ? RLENGTH : 1
				if (size == 1 || rest ~ steers)
					done = done substr("????", 1, size)
				else
					done = done substr(rest, 1, size)
				$0 = substr(rest, size + 1)
			}
			print done $0
		}'
}

clean_text() {
	printf '%s' "$1" | tr '\012' '?' | clean
}
