#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# catalog_test.sh SOURCE_ROOT - the message catalogue and the code name the same ids and the same fields.
set -u
root=$1
# shellcheck source=../hooks/scripts/lib.sh
. "$root/tests/hooks/scripts/lib.sh"

catalog=$root/systemd/dwelld.catalog
header=$root/src/act/journal_ids.h
tmp=$(mktemp -d /tmp/dwelld-catalog-XXXXXX)
trap 'rm -rf "$tmp"' EXIT

sed -n 's/^#define JOURNAL_ID_[A-Z_]* "\(.*\)".*/\1/p' "$header" | sort >"$tmp/code"
sed -n 's/^-- //p' "$catalog" | sort >"$tmp/catalog"
is 'the code has ids' "$([ "$(wc -l <"$tmp/code")" -ge 16 ] && echo yes)" yes
is 'the same ids in both' "$(diff "$tmp/code" "$tmp/catalog")" ''
is 'no id twice' "$(uniq -d "$tmp/code")" ''
# as "systemd-id128 new" makes them: 128 random bits, with the version 4 and the variant of RFC 4122 set
is 'all are valid ids' "$(grep -vE '^[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}$' "$tmp/code")" ''

# every entry: a subject of one line, who defines it, a manual page, and what it means
awk '/^-- /{ if (id != "") print id, subject, by, documentation, (text > 0); id = $2; subject = by = documentation = text = 0; next }
	/^Subject: ./{ subject++; next } /^Defined-By: dwelld$/{ by++; next } /^Documentation: man:/{ documentation++; next }
	/^#/{ next } /./{ text++ }
	END { print id, subject, by, documentation, (text > 0) }' "$catalog" >"$tmp/entries"
is 'every entry is complete' "$(grep -v ' 1 1 1 1$' "$tmp/entries")" ''

for field in $(grep -oE '@[A-Z_]+@' "$catalog" | tr -d @ | sort -u); do
	if grep -q "\"$field\"" "$root"/src/act/*.c; then
		ok "field $field is sent"
	else
		not_ok "field $field of the catalogue is sent by nobody"
	fi
done

if command -v journalctl >/dev/null; then
	mkdir -p "$tmp/root/usr/lib/systemd/catalog" "$tmp/root/var/lib/systemd/catalog"
	cp "$catalog" "$tmp/root/usr/lib/systemd/catalog/"
	is 'journalctl compiles it' "$(journalctl --root="$tmp/root" --update-catalog 2>&1)" ''
	while read -r id; do
		case $(journalctl --root="$tmp/root" --dump-catalog "$id" 2>&1) in
		*"Subject: "*) ;;
		*) not_ok "journalctl does not find $id" ;;
		esac
	done <"$tmp/code"
else
	skip 'journalctl is not installed'
fi
done_testing
