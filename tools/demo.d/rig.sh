# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# rig.sh - the stage: three network namespaces in a row, three cpu cgroups, and the programs in them.
#
#   snd (senders and receivers) --veth-- net (the relay: loses and delays) --veth-- sfu (the media server)
#
# cgroups are of the kind this host has: v2 (cpu.weight), or v1 (cpu.shares) with the same path in its other
# hierarchies, so that every way to name a process's cgroup says /dwelld-demo/sfu. The server's share of a CPU is small
# and the burners' large: equal weights starve nobody who uses little. Watcher and daemon have a group beside theirs: in
# /dwelld-demo are only server and burners, so that its weight protects the server from the rest of the host.
# Senders and relay are real-time, so that only the server suffers: with v1 that needs the root group (RT_GROUP_SCHED),
# with v2 they are in the watcher's.

rig_names='snd net sfu'
rig_sfu_low=256		# cpu.shares of the server before the remedy; v2: the weight is this * 100 / 1024
rig_pids=''		# of everything started here
rig_hogs=''
rig_home=''

# The server has the last CPU to itself (and the burners, which are on all); what watches it must not disturb it.
rig_cpu_list=$(awk '/^Cpus_allowed_list:/ { print $2 }' /proc/self/status)
mapfile -t rig_cpu_ids < <(tr , '\n' <<<"$rig_cpu_list" |
	while IFS=- read -r low high; do seq "$low" "${high:-$low}"; done)
rig_cpus=${#rig_cpu_ids[@]}
rig_first_cpu=${rig_cpu_ids[0]}
rig_last_cpu=${rig_cpu_ids[-1]}

rig_find_cgroups()
{
	rig_v1=$(awk '$3 == "cgroup" && $4 ~ /(^|,)cpu(,|$)/ { print $2; exit }' /proc/mounts)
	rig_v2=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	rig_systemd=$(awk '$3 == "cgroup" && $4 ~ /name=systemd/ { print $2; exit }' /proc/mounts)
	rig_cpu=${rig_v1:-$rig_v2}
}

# nominal cpu.shares to what this host's file takes
rig_set_weight()
{
	local group=$1 shares=$2 weight	# GROUP: as in /GROUP

	if [ -n "$rig_v1" ]; then
		echo $((shares > 262144 ? 262144 : shares)) >"$rig_cpu/$group/cpu.shares"
	else
		weight=$((shares * 100 / 1024))
		echo $((weight < 1 ? 1 : weight > 10000 ? 10000 : weight)) >"$rig_cpu/$group/cpu.weight"
	fi
}

rig_weight()
{
	cat "$rig_cpu/dwelld-demo/sfu/cpu.shares" 2>/dev/null || cat "$rig_cpu/dwelld-demo/sfu/cpu.weight"
}

rig_cgroups()
{
	local hierarchy

	rig_find_cgroups
	rig_home=$(awk -F: -v v1="$rig_v1" 'v1 != "" ? $2 ~ /(^|,)cpu(,|$)/ : $1 == 0 { print $3; exit }' /proc/self/cgroup)
	if [ -z "$rig_v1" ]; then
		grep -qw cpu "$rig_v2/cgroup.controllers" 2>/dev/null || die "no cpu controller, neither cgroup v1 nor v2"
		if ! grep -qw cpu "$rig_v2/cgroup.subtree_control"; then
			echo +cpu >"$rig_v2/cgroup.subtree_control" || die "cannot enable the cpu controller at the cgroup root"
			echo 1 >"$work_dir/cpu-enabled"
		fi
	fi
	for hierarchy in "$rig_v1" "$rig_v2" "$rig_systemd"; do
		[ -z "$hierarchy" ] || mkdir -p "$hierarchy"/dwelld-demo/{sfu,hog} "$hierarchy"/dwelld-demo-rig ||
			die "cannot make cgroups"
	done
	[ -n "$rig_v1" ] || echo +cpu >"$rig_v2/dwelld-demo/cgroup.subtree_control" || die "cannot pass the cpu controller on"
	rig_set_weight dwelld-demo $((4096 * rig_cpus))
	rig_set_weight dwelld-demo/sfu $rig_sfu_low
	rig_set_weight dwelld-demo-rig $((4096 * rig_cpus))
	echo $$ >"$rig_cpu/dwelld-demo-rig/cgroup.procs"	# the watcher and the daemon live on the starved host
	[ "$rig_cpus" = 1 ] ||
		taskset -pc "$(IFS=,; echo "${rig_cpu_ids[*]:0:rig_cpus-1}")" $$ >/dev/null
}

rig_in()	# GROUP NAMESPACE LOG COMMAND...: starts it, sets rig_started
{
	local group=$1 namespace=$2 log=$3 hierarchy

	shift 3
	(
		for hierarchy in "$rig_v1" "$rig_v2" "$rig_systemd"; do
			[ -z "$hierarchy" ] || echo "$BASHPID" >"$hierarchy/$group/cgroup.procs"
		done
		taskset -pc "$rig_cpu_list" "$BASHPID" >/dev/null
		[ "$group" != dwelld-demo-rig ] || [ -z "$rig_v1" ] || echo "$BASHPID" >"$rig_v1/cgroup.procs"
		exec ${namespace:+nsenter --net=/run/netns/dwelld-demo-$namespace} "$@"
	) </dev/null >>"$work_dir/$log" 2>&1 {host_stdout}>&- &
	rig_started=$!
	rig_pids+=" $rig_started"
}

rig_network()
{
	local n

	for n in $rig_names; do
		ip netns add dwelld-demo-$n || die "cannot make network namespaces"
		nsenter --net=/run/netns/dwelld-demo-$n sh -c 'for f in all default; do
			echo 1 >/proc/sys/net/ipv6/conf/$f/disable_ipv6; done' 2>/dev/null	# no chatter of its own
		ip -n dwelld-demo-$n link set lo up
	done
	ip link add name snd netns dwelld-demo-snd type veth peer name snd netns dwelld-demo-net &&
		ip link add name sfu netns dwelld-demo-sfu type veth peer name sfu netns dwelld-demo-net &&
		ip -n dwelld-demo-snd addr add 10.0.0.1/24 dev snd && ip -n dwelld-demo-sfu addr add 10.0.0.2/24 dev sfu ||
		die "cannot join the network namespaces"
	for n in snd net:snd net:sfu sfu; do
		ip -n "dwelld-demo-${n%:*}" link set "${n#*:}" up || die "cannot join the network namespaces"
	done
}

rig_wait_for()	# LOG PATTERN: until a program says so
{
	local deadline=$((SECONDS + 10))

	until grep -q "$2" "$work_dir/$1" 2>/dev/null; do
		[ $SECONDS -lt $deadline ] || die "$1: no '$2' within 10 s: $(tail -n 3 "$work_dir/$1")"
		sleep 0.1
	done
}

rig_start_server()	# MICROSECONDS of work per packet, [OPTIONS]
{
	rig_in dwelld-demo/sfu sfu sfu.log "$work_dir/bin/demo-sfu" --listen 10.0.0.2:5004 --work-us "$@" \
		--cpu "$rig_last_cpu" --stats
	rig_server=$rig_started
}

rig_start_senders()	# NAMESPACE AUDIO VIDEO PER-FRAME: streams
{
	: >"$work_dir/send.log"
	rig_in dwelld-demo-rig "$1" send.log "$work_dir/bin/demo-send" --to 10.0.0.2:5004 --receive 0.0.0.0:6000 \
		--cpu "$rig_first_cpu" --audio "$2" --video "$3" --per-frame "$4"
	rig_sender=$rig_started
	rig_wait_for send.log '^second=1 '
}

rig_build()
{
	rig_network
	rig_cgroups
	: >"$work_dir/relay.log"
	rig_in dwelld-demo-rig net relay.log "$work_dir/bin/demo-relay" --loss-permille 80 --delay-ms 40 \
		--jitter-ms 200 --cpu "$rig_first_cpu" snd sfu
	rig_relay=$rig_started
	rig_wait_for relay.log '^sched='
	rig_start_server 100 --to 10.0.0.1:6000
	rig_start_senders snd 10 10 2	# 500 + 500 packets/s
	grep -q sched=other "$work_dir/relay.log" "$work_dir/send.log" &&
		say "   (no real-time scheduling here: senders and relay run with a large CPU weight)"
	return 0
}

rig_end()	# PID
{
	kill "$1" 2>/dev/null
	wait "$1" 2>/dev/null
	rig_pids=${rig_pids/ $1/}
}

# The burners' weight is such that the server is left with this share of its CPU (in 1/1000).
rig_start_hogs()
{
	rig_set_weight dwelld-demo/hog $((rig_sfu_low * (1000 - $1) / $1 * rig_cpus))
	rig_in dwelld-demo/hog '' hog.log "$work_dir/bin/demo-hog" --per-cpu 2
	rig_hogs=$rig_started
}

# Takes everything away, also what a killed demo left; safe at any moment and twice.
rig_remove()
{
	local pid n hierarchy groups

	rig_find_cgroups
	for pid in $rig_pids; do kill "$pid" 2>/dev/null; done
	for pid in $rig_pids; do wait "$pid" 2>/dev/null; done
	rig_pids=''
	[ -d "$rig_cpu/dwelld-demo-rig" ] && echo $$ >"$rig_cpu${rig_home:-/}/cgroup.procs" 2>/dev/null
	groups=$(for hierarchy in "$rig_v1" "$rig_v2" "$rig_systemd"; do
		[ -z "$hierarchy" ] || find "$hierarchy/dwelld-demo" "$hierarchy/dwelld-demo-rig" -depth -type d 2>/dev/null; done)
	for n in $groups; do	# only our own programs and a hook that was running can be in there
		while read -r pid; do [ "$pid" = $$ ] || kill -KILL "$pid" 2>/dev/null; done <"$n/cgroup.procs"
	done
	for n in $groups; do
		local deadline=$((SECONDS + 5))
		until rmdir "$n" 2>/dev/null || [ $SECONDS -ge $deadline ]; do sleep 0.05; done
	done
	for n in $rig_names; do
		[ ! -e /run/netns/dwelld-demo-$n ] || ip netns del dwelld-demo-$n
	done
	[ -e "$work_dir/cpu-enabled" ] || return 0
	echo -cpu >"$rig_v2/cgroup.subtree_control"
	rm "$work_dir/cpu-enabled"
}
