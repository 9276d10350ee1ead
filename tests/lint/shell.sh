#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# shell - shellcheck over every script; man pages through mandoc's lint.
set -u
cd "${1:-.}" || exit 1
passed=0
failed=0
skipped=0

count() { if [ "$1" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "NOT OK $2"; fi; }

if command -v shellcheck >/dev/null; then
	for file in $(git ls-files | while read -r f; do head -n 1 "$f" 2>/dev/null | grep -qE '^#!.*[/ ](sh|bash)$' && echo "$f"; done); do
		shellcheck -x -P SCRIPTDIR -S warning "$file"
		count $? "$file (shellcheck)"
	done
else
	echo "skip shellcheck is not installed"
	skipped=$((skipped + 1))
fi
if command -v mandoc >/dev/null; then
	for file in $(git ls-files 'man/*.[1-8]'); do
		out=$(mandoc -Tlint -Wwarning "$file" 2>&1)
		[ -z "$out" ]
		status=$?
		[ -z "$out" ] || echo "$out"
		count $status "$file (mandoc)"
	done
else
	echo "skip mandoc is not installed"
	skipped=$((skipped + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
