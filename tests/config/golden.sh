#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Reads every configuration of a directory and compares what is said about it with the text kept beside it.
# Usage: golden.sh CONFIG_GOLDEN DIRECTORY [--write]
#   NAME.conf or NAME.d (in the shape of /etc/dwelld), and NAME.expected: the messages, then "exit N".
#   print-NAME: and the resolved file, which must parse to itself. hooks-NAME: read as the hook runner does.
#   --write makes the expectations from what is said now: look at the difference before you keep it.
set -u

golden=$1 directory=$2 write=${3-}
passed=0 failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
strip() { sed 's/[[:space:]]*#.*//' "$1"; }

for input in "$directory"/*.conf "$directory"/*.d; do
	name=$(basename "$input")
	name=${name%.conf}
	name=${name%.d}
	expected=$directory/$name.expected
	case $name in
	print-*) option=--print ;;
	hooks-*) option=--hooks ;;
	*) option=--messages ;;
	esac
	"$golden" "$option" "$input" >"$work/out"
	code=$?
	ok=yes
	{ sed "s|# $directory/|# |" "$work/out"; echo "exit $code"; } >"$work/said"
	if [ "$write" = --write ]; then
		cp "$work/said" "$expected"
	elif ! diff -u "$expected" "$work/said"; then
		ok=no
	fi
	if [ "$option" = --print ]; then
		"$golden" --print "$work/out" >"$work/again"
		strip "$work/out" >"$work/one"
		strip "$work/again" >"$work/two"
		diff -u "$work/one" "$work/two" || ok=no
		[ "$("$golden" --hash "$input" | tail -n 1)" = "$("$golden" --hash "$work/out" | tail -n 1)" ] || ok=no
	fi
	if [ $ok = yes ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED: $name"
	fi
done
echo "golden: $passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 40 ]
