# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Prints facts (section, name, verdict, value, advice, id) as metrics, in the text
# format of Prometheus: each metric's samples stand together, below its type.

# metric NAME TYPE HELP
function metric(name, type, help) {
	print "# HELP " name " " help
	print "# TYPE " name " " type
}

function label(text) {
	gsub(/\\/, "\\\\", text)
	gsub(/"/, "\\\"", text)
	return "\"" text "\""
}

# figure NAME TYPE HELP FACT: a sample of its own, if there is such a fact.
function figure(name, type, help, fact) {
	if (!(fact in number)) return
	metric(name, type, help)
	print name " " number[fact]
}

$4 ~ /^[0-9]+$/ { number[$6] = $4 }
$3 != "none" { judged[++n] = $6; level[n] = $3 == "good" ? 0 : $3 == "warn" ? 1 : 2; many[$3]++ }
$6 ~ /^use\/failed_/ && $4 ~ /^[0-9]+$/ { cause[++causes] = substr($6, 12); failed[causes] = $4 }

END {
	metric("nvpm_info", "gauge", "The kernel that was running; always 1.")
	print "nvpm_info{kernel=" label(kernel) "} 1"
	if (state != "unknown") {
		metric("nvpm_loaded", "gauge", "Whether the module nv_peer_mem is loaded.")
		print "nvpm_loaded " (state == "running")
	}
	metric("nvpm_attention", "gauge", "Facts that need attention, by verdict: warn works but could do better, bad does not work.")
	print "nvpm_attention{verdict=\"warn\"} " many["warn"] + 0
	print "nvpm_attention{verdict=\"bad\"} " many["bad"] + 0
	metric("nvpm_fact", "gauge", "What status says of each fact that it judges: 0 good, 1 works but could do better, 2 does not work.")
	for (i = 1; i <= n; i++) print "nvpm_fact{id=" label(judged[i]) "} " level[i]
	figure("nvpm_regions", "gauge", "Regions of GPU memory that devices can reach now.", "use/regions")
	figure("nvpm_registered_bytes", "gauge", "Bytes of these regions.", "use/bytes")
	figure("nvpm_left_behind", "gauge", "Registrations that have ended and whose memory is still pinned.", "use/left_behind")
	figure("nvpm_registrations_total", "counter", "Registrations that have succeeded.", "use/registrations")
	figure("nvpm_revocations_total", "counter", "Registrations that have ended because their memory was freed.", "use/revocations")
	if (causes) metric("nvpm_failed_registrations_total", "counter", "Registrations that have failed, by cause.")
	for (i = 1; i <= causes; i++) print "nvpm_failed_registrations_total{cause=" label(cause[i]) "} " failed[i]
}
