#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# fetch.sh - one of Debian's kernels into the cache; prints the path of its vmlinuz, or on stderr why there is none.
#
# usage: fetch.sh KERNEL CACHE		KERNEL: 5.10, 6.1, 6.12, or sid for the newest there
#
# Where from: the archives of the machine's own apt sources, with only the suite changed, in an apt directory of our own.
# Signatures are checked as ever. A kernel fetched within a week is not asked for again.
set -u
kernel=$1 cache=$2
dir=$cache/$kernel
week=$((7 * 24 * 60))

no()
{
	printf '%s\n' "$*" >&2
	exit 1
}

case $kernel in
5.10) suites='debian:bullseye debian-security:bullseye-security' ;;
6.1) suites='debian:bookworm debian-security:bookworm-security' ;;
6.12) suites='debian:trixie debian-security:trixie-security' ;;
sid) suites='debian:sid' ;;
*) no "no suite is known to have kernel $kernel" ;;
esac

[ -n "$(find "$dir/vmlinuz" -mmin "-$week" 2>/dev/null)" ] && { echo "$dir/vmlinuz"; exit 0; }
mkdir -p "$dir"/lists/partial "$dir"/archives/partial "$dir"/state "$dir"/parts || no "$dir cannot be made"
: >"$dir/status"

# the archive's address under which the machine's own suites are found, by label
archive()
{
	apt-get indextargets 'Created-By: Packages' --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 2>/dev/null |
		awk -v label="$1" '$1 == "Debian" && tolower($2) == label { print $3; exit }'
}

sources()
{
	local pair uri

	for pair in $suites; do
		uri=$(archive "${pair%%:*}")
		[ -n "$uri" ] || continue
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri ${pair#*:} main"
	done
}

# an old suite's index no longer says that it is fresh
options=(-q -o "Dir::State=$dir/state" -o "Dir::State::Lists=$dir/lists" -o "Dir::State::status=$dir/status"
	-o "Dir::Cache=$dir" -o "Dir::Etc::SourceList=$dir/sources.list" -o "Dir::Etc::SourceParts=$dir/parts"
	-o "Dir::Etc::PreferencesParts=$dir/parts" -o "Dir::Etc::Preferences=$dir/parts/none"
	-o Acquire::Languages=none -o Acquire::Check-Valid-Until=false -o APT::Sandbox::User=root -o Acquire::Retries=2
	-o APT::Update::Post-Invoke::= -o Acquire::http::Timeout=30)

pick()
{
	local numbers='[0-9][0-9.]*'

	[ "$kernel" = sid ] || numbers=${kernel//./\\.}'\.[0-9.]+'
	apt-cache "${options[@]}" pkgnames linux-image- | grep -E "^linux-image-$numbers([-+][-+~0-9a-z.]*)?-cloud-amd64$" | sort -V | tail -n 1
}

# the image itself; since 7.1 linux-image-* only depends on linux-binary-*
unpack()
{
	(cd "$dir" && rm -f ./*.deb && apt-get "${options[@]}" download "$1" >>"$dir/apt.log" 2>&1) || return 1
	dpkg-deb --fsys-tarfile "$dir"/*.deb | tar -xO --wildcards '*/vmlinuz*' >"$dir/vmlinuz.new" 2>>"$dir/apt.log"
}

fetch()
{
	local package version

	sources >"$dir/sources.list"
	[ -s "$dir/sources.list" ] || no "the machine's apt knows no Debian archive"
	apt-get "${options[@]}" update >"$dir/apt.log" 2>&1 || no "apt-get update: $(grep '^E:' "$dir/apt.log" | head -n 1)"
	package=$(pick)
	[ -n "$package" ] || no "no cloud kernel in $suites: $(grep -E '^(E|W|Err)' "$dir/apt.log" | head -n 1)"
	version=$(apt-cache "${options[@]}" policy "$package" | sed -n 's/^  Candidate: //p')
	unpack "$package" || unpack "${package/image/binary}" || no "no vmlinuz from $package: $(tail -n 1 "$dir/apt.log")"
	rm -f "$dir"/*.deb
	echo "$package $version" >"$dir/package"
	mv "$dir/vmlinuz.new" "$dir/vmlinuz"
	touch "$dir/vmlinuz"
}

(fetch) || {
	[ -s "$dir/vmlinuz" ] || exit 1
	echo "kept the cached one" >&2
}
echo "$dir/vmlinuz"
