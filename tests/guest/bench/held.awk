# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The bytes in a trace of allocations that are not freed again, for each of "many"
# registrations.
#
# Memory for slabs and for large objects of kmalloc comes in compound pages: it is
# counted as the objects in it, not as pages.
function field(name, text) {
	if (!match($0, " " name "=[^ ]+")) return ""
	text = substr($0, RSTART, RLENGTH)
	sub(/^[^=]*=/, "", text)
	return text
}

# number TEXT: of a hexadecimal number with 0x before it.
function number(text, value, i) {
	for (i = 3; i <= length(text); i++)
		value = value * 16 + index("123456789abcdef", substr(text, i, 1))
	return value
}

function pages(bytes, pfn, count) {
	pfn = number(field("pfn"))
	for (count = 2 ^ field("order"); count > 0; count--) {
		if (bytes) size["page " pfn++] = bytes
		else delete size["page " pfn++]
	}
}

/ (kmalloc|kmem_cache_alloc): / { size[field("ptr")] = field("bytes_alloc") }
/ (kfree|kmem_cache_free): / { delete size[field("ptr")] }
/ mm_page_alloc: / && !/__GFP_COMP/ { pages(4096) }
/ mm_page_free(_batched)?: / { pages(0) }
/LOST/ { lost = 1 }

END {
	if (lost) {
		print "the trace has lost events: a larger buffer is needed" >"/dev/stderr"
		exit 1
	}
	for (object in size) total += size[object]
	printf "%d\n", total / many + 0.5
}
