#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The configuration files that are shipped parse without an error or a warning; so does dwelld.conf with its commented
# example switched on. Usage: shipped.sh CONFIG_GOLDEN CONF_DIRECTORY
set -u

golden=$1 conf=$2 count=0 failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# lines that begin with # and no blank are configuration
sed 's/^#\([^ ]\)/\1/' "$conf/dwelld.conf" >"$work/dwelld-uncommented.conf"
grep -q '^rules = (' "$work/dwelld-uncommented.conf" || { echo "FAILED: dwelld.conf has no example"; exit 1; }
for file in "$conf/dwelld.conf" "$conf/builtin.conf" "$conf"/examples/*.conf "$work"/*.conf; do
	count=$((count + 1))
	said=$("$golden" --messages "$file")
	if [ $? -ne 0 ] || [ -n "$said" ]; then
		printf 'FAILED: %s\n%s\n' "$file" "$said"
		failed=$((failed + 1))
	fi
done
echo "shipped: $((count - failed)) passed, $failed failed"
[ $failed -eq 0 ] && [ $count -ge 6 ]
