#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# bpf_probe_read (4), bpf_probe_read_kernel (113) and their string forms (45, 115) are refused under
# lockdown=confidentiality. Only the sections of kprobe programs may call them: everything else loads typed pointers.
# usage: no_probe_read.sh LLVM-OBJDUMP OBJECT...
set -eu

objdump=$1
shift
[ $# -gt 0 ] || { echo "no objects given" >&2; exit 1; }
calls=0
bad=0
for object in "$@"; do
	list=$("$objdump" -d "$object" | awk '
		/^Disassembly of section / { section = $4 }
		/[[:space:]]call [0-9]+$/ {
			calls++
			if (section !~ /^[?]?k(ret)?probe/ && $NF ~ /^(4|45|113|115)$/)
				print "  " section " " $0
		}
		END { print "calls " calls + 0 }')
	n=$(echo "$list" | sed -n 's/^calls //p')
	calls=$((calls + n))
	if echo "$list" | grep -q '^  '; then
		echo "$object:"
		echo "$list" | grep '^  '
		bad=1
	fi
done
# an objdump whose output is not understood must not pass
[ "$calls" -gt 100 ] || { echo "only $calls helper calls found in $# objects: is the disassembly readable?" >&2; exit 1; }
echo "$calls helper calls in $# objects looked at"
exit "$bad"
