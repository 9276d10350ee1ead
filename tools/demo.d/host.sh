# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# host.sh - what the demo does to the host and how it is taken back: packages, build, traces, the check at the end.
# Sourced by tools/demo. Everything that must be undone is undone by host_leave, which runs on every exit.

host_entered=''
exec {host_stdout}>&1
host_awaited=''

# The names are the same on Debian 12 and 13.
host_missing_packages()
{
	local package missing=''

	for package in gcc libc6-dev meson ninja-build pkg-config clang llvm libbpf-dev libelf-dev libsystemd-dev \
		libconfig-dev libjansson-dev bpftool iproute2 jq util-linux; do
		case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) in
		installed) ;;
		*) missing+="$package " ;;
		esac
	done
	printf '%s' "$missing"
}

host_install()
{
	local missing

	missing=$(host_missing_packages)
	[ -n "$missing" ] || return 0
	command -v apt-get >/dev/null || die "missing: $missing and no apt-get here to install them"
	say "== installing $missing"
	# shellcheck disable=SC2086	# a list of words
	{
		apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 install -y -q \
			--no-install-recommends $missing
	} >"$work_dir/apt.log" 2>&1 || { tail -n 20 "$work_dir/apt.log"; die "apt-get failed"; }
}

# In the background, so that a TERM to the script alone is not held up by a long command.
host_await()
{
	"$@" &
	host_awaited=$!
	wait "$host_awaited"
	local status=$?
	host_awaited=''
	return $status
}

host_build()
{
	local dir=${build_dir:-$work_dir/build} program

	say "== building into $dir"
	if [ ! -f "$dir/build.ninja" ]; then
		host_await meson setup "$dir" "$source_dir" -Dtests=disabled >"$work_dir/build.log" 2>&1
	fi && host_await ninja -C "$dir" >>"$work_dir/build.log" 2>&1 ||
		{ tail -n 30 "$work_dir/build.log"; die "the build failed"; }
	mkdir -p "$work_dir/bin" "$work_dir/hooks"
	for program in src/dwelld src/ctl/dwellctl src/run/dwelld-hook-run tools/demo.d/demo-{sfu,send,relay,hog,cost}; do
		install -m 755 "$dir/$program" "$work_dir/bin/" || die "the build made no $program"
	done
	install -m 755 "$source_dir/hooks/raise-cpu" "$work_dir/hooks/" || die "no hooks/raise-cpu"
}

# One demo at a time; what a killed one (kill -9) left behind is taken away first.
host_enter()
{
	local other

	if ! mkdir -m 755 "$work_dir" 2>/dev/null; then
		other=$(cat "$work_dir/pid" 2>/dev/null)
		if [ -n "$other" ] && [ "$(tr '\0' ' ' <"/proc/$other/cmdline" 2>/dev/null | grep -c tools/demo)" -gt 0 ]; then
			die "another demo runs (pid $other)"
		fi
		say "== taking away what a killed demo left"
		rig_remove
		rm -rf "$work_dir"
		mkdir -m 755 "$work_dir" || die "cannot make $work_dir"
	fi
	echo $$ >"$work_dir/pid"
	: >"$work_dir/links"
	host_entered=1
}

# What the check compares, one thing a line. Programs: those of ours by path, so another dwelld does not matter.
host_snapshot()
{
	ip netns list | sed 's/ .*//; s/^/netns /' | sort
	find /sys/fs/cgroup -type d -printf 'cgroup %p\n' 2>/dev/null | sort
	bpftool -j link list 2>/dev/null | jq -r '.[] | "bpf-link \(.id) \(.type)"' | sort
	find /proc/[0-9]*/exe -maxdepth 0 -lname "$work_dir/bin/*" -printf 'process %p\n' 2>/dev/null
	cat /sys/fs/cgroup/{,unified/}cgroup.subtree_control 2>/dev/null | sed 's/^/controllers /'
	find /etc -type f -printf 'etc %p %s %T@\n' 2>/dev/null | sort
}

host_interrupted()
{
	exec >&"$host_stdout"
	say
	say "== interrupted"
	[ -z "$host_awaited" ] || kill "$host_awaited" 2>/dev/null
	exit 130
}

# The differences that are the demo's own; anything else on the host may have changed meanwhile and is only named.
host_check()
{
	local ours others id pattern='dwelld-demo|^. process |^. controllers |^. etc .*dwelld'

	[ -s "$work_dir/before" ] || return 0
	host_snapshot >"$work_dir/after"
	diff "$work_dir/before" "$work_dir/after" | grep '^[<>]' >"$work_dir/changed"
	ours=$(
		grep -E "$pattern" "$work_dir/changed"
		while read -r id; do grep -E "^> bpf-link $id " "$work_dir/changed"; done <"$work_dir/links"
	)
	others=$(grep -vE "$pattern" "$work_dir/changed" | grep -vF "${ours:-nothing}")
	say "== check: $(grep -c ^netns "$work_dir/after") network namespaces, $(grep -c ^cgroup "$work_dir/after") cgroups," \
		"$(grep -c ^bpf-link "$work_dir/after") BPF links, $(grep -c ^process "$work_dir/after") processes of the demo," \
		"$(grep -c ^etc "$work_dir/after") files in /etc"
	[ -z "$others" ] ||
		printf '   changed meanwhile, by others:\n%s\n' "$(head -n 10 <<<"$others" | sed 's/^/     /')"
	if [ -n "$ours" ]; then
		printf '   LEFT BEHIND by the demo (< before, > now):\n%s\n' "$(sed 's/^/     /' <<<"$ours")"
		return 1
	fi
	say "   as before: nothing of the demo is left (dwelld had attached $(wc -l <"$work_dir/links") BPF links)"
}

host_leave()
{
	local status=$?

	trap '' INT TERM HUP
	trap - EXIT
	exec >&"$host_stdout"	# the trap may have come while a function's output went to a file
	[ -n "$host_entered" ] || exit "$status"
	watch_stop
	rig_remove
	host_check || status=1
	rm -rf "$work_dir"
	exit "$status"
}
