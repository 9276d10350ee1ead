# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# lib.sh - what the tests of the shipped hook scripts share. One line per check: ok, not ok, or skip with its reason.

failed=0 passed=0
ok() { passed=$((passed + 1)); printf 'ok - %s\n' "$*"; }
not_ok() { failed=$((failed + 1)); printf 'not ok - %s\n' "$*"; }
skip() { printf 'skip - %s\n' "$*"; }

is() {	# NAME GOT WANT
	if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1: got '$2', expected '$3'"; fi
}

# Runs a hook; its whole output is in $out, the last line, which is the hook's result, in $last, its exit in $code.
run() {
	out=$("$@" 2>&1)
	code=$?
	last=$(printf '%s\n' "$out" | tail -n 1)
}

expect() {	# NAME EXIT PATTERN: of the last run; PATTERN is matched against the result line
	expect_name=$1
	# shellcheck disable=SC2254 # a pattern on purpose
	case $code:$last in
	$2:$3)
		if [ "${#last}" -le 200 ]; then
			ok "$expect_name"
		else
			not_ok "$expect_name: the result line has ${#last} bytes, at most 200 are kept"
		fi ;;
	*)
		not_ok "$expect_name: exit $code, expected $2 '$3'; output was:"
		printf '%s\n' "$out" | sed 's/^/    /' ;;
	esac
}

wait_for() {	# SECONDS COMMAND...: until it succeeds
	wait_left=$(($1 * 20))
	shift
	while ! "$@"; do
		wait_left=$((wait_left - 1))
		[ "$wait_left" -gt 0 ] || return 1
		sleep 0.05
	done
}

done_testing() {
	printf '%s passed, %s failed\n' "$passed" "$failed"
	[ "$failed" -eq 0 ] || exit 1
	[ "$passed" -gt 0 ] || exit 77
	exit 0
}

# As dwelld calls a hook: only these variables, nothing inherited.
hook_env() {	# [NAME=VALUE]... COMMAND...
	env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 TZ=UTC HOME=/nonexistent \
		DWELLD_CONTRACT=1 DWELLD_TARGET=sfu DWELLD_RULE=reader-starved DWELLD_ALERT_ID=h-starved-sfu-1 \
		DWELLD_EVENT=fire DWELLD_SEQ=1 DWELLD_ATTEMPT=1 DWELLD_CLASS=server DWELLD_SEVERITY=warning "$@"
}
