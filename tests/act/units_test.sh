#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# units_test.sh SOURCE_ROOT UNIT... - what systemd says of the unit files, without booting anything.
set -u
root=$1
shift
# shellcheck source=../hooks/scripts/lib.sh
. "$root/tests/hooks/scripts/lib.sh"

tmp=$(mktemp -d /tmp/dwelld-units-XXXXXX)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/units"
for unit; do
	is "${unit##*/}: every path was filled in" "$(grep -oE '@[a-z]+@' "$unit")" ''
	# the programs need not be installed here
	sed -E 's,^(Exec[A-Za-z]+=[-+!@:]*)/[^ ]+,\1/bin/true,' "$unit" >"$tmp/units/${unit##*/}"
done
if ! command -v systemd-analyze >/dev/null; then
	skip 'systemd-analyze is not installed'
	done_testing
fi
is 'systemd-analyze verify has nothing to say' "$(systemd-analyze verify --man=no "$tmp"/units/* 2>&1)" ''
# the three capabilities, bpf() and the loopback make up the 1.8
systemd-analyze security --offline=true --threshold=18 --no-pager "$tmp/units/dwelld.service" >"$tmp/exposure" 2>&1
is "exposure at most 1.8 ($(tail -n 1 "$tmp/exposure"))" $? 0
is 'no capability but the three' "$(grep -E '^(Ambient|Bounding|Capability)[A-Za-z]*=' "$tmp/units/dwelld.service" | cut -d = -f 2 |
	sort -u)" 'CAP_BPF CAP_PERFMON CAP_NET_ADMIN'
for kind in sysusers tmpfiles; do
	file=$root/systemd/dwelld-$kind.conf
	mkdir -p "$tmp/root/etc"
	if ! command -v "systemd-$kind" >/dev/null; then
		skip "systemd-$kind is not installed"
	elif [ "$(id -u)" != 0 ]; then
		skip "systemd-$kind --root: needs root"
	elif [ $kind = sysusers ]; then
		systemd-sysusers --root="$tmp/root" "$file" >"$tmp/out" 2>&1
		is 'sysusers' "$? $(cut -d : -f 1 "$tmp/root/etc/group" | grep dwelld | sort | tr '\n' ' ')" \
			'0 dwelld dwelld-admin dwelld-hook '
	else
		systemd-tmpfiles --create --root="$tmp/root" "$file" >"$tmp/out" 2>&1
		is 'tmpfiles' "$? $(stat -c %a "$tmp/root/var/lib/dwelld-hook/runs" "$tmp/root/etc/dwelld/conf.d" | tr '\n' ' ')" \
			'0 2750 755 '
	fi
done
done_testing
