# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the module's unit tests, run in the kernel
load_neighbours
# Suites run when their module is loaded. KUnit keeps their results, as KTAP.
load_module
suites=0 tests=0
for results in /sys/kernel/debug/kunit/nv_peer_mem*/results; do
	[ -e "$results" ] || break
	suite=$(basename "${results%/results}")
	cat "$results"
	planned=$(sed -n 's/^    1\.\.//p' "$results")
	passed=$(grep '^    ok ' "$results" | grep -vc '# SKIP') || true
	check "$suite has tests" test "$planned" -gt 0
	equal "$suite: tests that passed" "$planned" "$passed"
	check "$suite passed" grep -qx "ok 1 $suite" "$results"
	suites=$((suites + 1)) tests=$((tests + passed))
done
check "the module has suites" test "$suites" -gt 0
equal "no test failed, says the kernel's log" '' "$(dmesg | grep -E ' not ok [0-9]+ ' | head -n 3)"
say "$tests tests in $suites suites passed"
