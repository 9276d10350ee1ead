# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# scenes.sh - the scenes: what is made to happen, which verdict must come of it, and the table at the end.
#
# A scene whose senders were late (p99 of a second > 5 ms) or whose CPU time was taken by the hypervisor (> 5 %) says
# nothing about the server: it is void and repeated, at most twice.

scenes_failed=0
scene_table=''
scene_low_weight=''
scene_load_share=0

scene_begin()	# NAME TEXT
{
	scene_name=$1
	scene_started=$SECONDS
	scene_send_lines=$(wc -l <"$work_dir/send.log")
	scene_log_lines=$(wc -l <"$work_dir/dwelld.log")
	scene_sfu_lines=$(wc -l <"$work_dir/sfu.log")
	scene_cpu=$(scene_cpu_times)
	scene_worst_mean=0 scene_worst_p99=0 scene_worst_max=0
	say
	say "== $2"
	watch_head
}

scene_cpu_times()	# all ticks, stolen ticks
{
	awk '$1 == "cpu" { for (i = 2; i <= 9; i++) all += $i; print all, $9 }' /proc/stat
}

scene_tick()
{
	sleep 1
	watch_read
	watch_line "$scene_name" $((SECONDS - scene_started))
	[ "$watch_mean" -le "$scene_worst_mean" ] || scene_worst_mean=$watch_mean
	[ "$watch_p99" -le "$scene_worst_p99" ] || scene_worst_p99=$watch_p99
	[ "$watch_max" -le "$scene_worst_max" ] || scene_worst_max=$watch_max
}

scene_until()	# SECONDS CONDITION...: ticks until the condition holds; false when the time is over
{
	local deadline=$((SECONDS + $1))

	shift
	until "$@"; do
		[ $SECONDS -lt $deadline ] || return 1
		scene_tick
	done
}

scene_while()	# SECONDS CONDITION...: true when it held at every tick
{
	local deadline=$((SECONDS + $1))

	shift
	while [ $SECONDS -lt $deadline ]; do
		scene_tick
		"$@" || return 1
	done
}

scene_log()	# what dwelld said since the scene began
{
	tail -n +$((scene_log_lines + 1)) "$work_dir/dwelld.log"
}

scene_count()	# PATTERN
{
	scene_log | grep -c -E "$1"
}

scene_is_void()
{
	local late steal

	late=$(tail -n +$((scene_send_lines + 1)) "$work_dir/send.log" | grep -o 'late_p99_us=[0-9]*' |
		cut -d= -f2 | sort -n | tail -n 1)
	steal=$(scene_cpu_times | awk -v before="$scene_cpu" '{
		split(before, b); all = $1 - b[1]; print all ? int(100 * ($2 - b[2]) / all) : 0 }')
	say "   the senders were at most ${late:-?} us late (worst second's p99), $steal % of the CPU time was stolen"
	[ "${late:-999999}" -gt 5000 ] || [ "$steal" -gt 5 ]
}

# By the server's own clock: a load that did not starve it asks nothing of dwelld.
scene_too_light()
{
	[ "$scene_name" = load ] && awk -v p99="$(scene_own_age p99)" 'BEGIN { exit !(p99 + 0 < 30) }' &&
		say "   the load was too light: by its own clock the server was never 30 ms late"
}

scene_own_age()	# PERCENTILE: of the worst second, by the server's own clock, in ms
{
	tail -n +$((scene_sfu_lines + 1)) "$work_dir/sfu.log" | grep -o "$1 [0-9.]*" | cut -d' ' -f2 |
		sort -g | tail -n 1
}

scene_row()	# WHAT DWELL VERDICT PUBLISHED
{
	scene_table+=$(printf '%-19s  %-42s  %-28s  %s' "$1" "$2" "$3" "$4")$'\n'
}

scene_ms()	# NANOSECONDS
{
	awk -v ns="$1" 'BEGIN {
		if (ns < 0) print "-"; else if (ns < 1e6) printf "%.0f us\n", ns / 1e3; else printf "%.1f ms\n", ns / 1e6 }'
}

scene_fail()
{
	say "   FAILED: $*"
	tail -n 8 "$work_dir/dwelld.log" | sed 's/^/   dwelld: /'
	return 1
}

# -- conditions --
scene_ok() { [ "$watch_verdict" = ok ] && [ "$watch_p99" -ge 0 ] && [ "$watch_p99" -lt 10000000 ]; }
scene_server() { [ "$watch_verdict" = server ] && [[ ,$watch_causes, == *,reader-starved,* ]]; }
scene_raised()
{
	[ "$(rig_weight)" != "$scene_low_weight" ] && [ "$(scene_count 'HOOK raise-cpu do for demo-sfu done')" -ge 1 ]
}
scene_relieved() { [ "$watch_rule" = mitigated ] && [ "$watch_verdict" = ok ]; }
scene_stays()
{
	[ "$(rig_weight)" = "$scene_high_weight" ] &&
		[ "$(scene_count 'ALERT.* demo-sfu: server / reader-starved')" -le 1 ]
}
scene_undone()
{
	[ "$(rig_weight)" = "$scene_low_weight" ] && [ "$(scene_count 'HOOK raise-cpu undo for demo-sfu done')" -ge 1 ]
}
scene_network() { [ "$watch_verdict" = network ]; }
scene_network_only() { [ "$watch_verdict" = network ] && [ "$(rig_weight)" = "$scene_weight" ]; }

scene_settled() { scene_ok && [ "$(rig_weight)" = "$scene_low_weight" ]; }

# -- scenes: 0 its verdict came, 1 not --
scene_baseline()
{
	scene_begin baseline "baseline: 20 RTP streams, 1000 packets/s, nothing wrong"
	scene_until 40 scene_ok || { scene_fail "no ok within 40 s"; return; }
	scene_while "$((short ? 5 : 12))" scene_ok || { scene_fail "not ok throughout"; return; }
	scene_row baseline "p50 $watch_p50_text p99 $watch_p99_text max $watch_max_text" "ok" "33 us OK"
	scene_row "  by its own clock" "p50 $(scene_own_age p50) ms p99 $(scene_own_age p99) ms, network included" "" ""
}

# The share of a CPU that the server is left with, in 1/1000: less than it used in its quietest second so far.
scene_share()
{
	local used

	used=$(grep -o 'cpu [0-9.]*' "$work_dir/sfu.log" | tail -n +3 | cut -d' ' -f2 | sort -g | head -n 1)
	awk -v used="${used:-10}" -v attempt="$1" 'BEGIN {
		share = used * 10 * (0.9 - 0.2 * attempt); print int(share < 10 ? 10 : share > 200 ? 200 : share) }'
}

scene_load()
{
	local relief_ns

	scene_load_share=$(scene_share "$scene_attempt")
	scene_begin load \
		"server load: CPU burners on all CPUs, whose cgroup leaves the server $((scene_load_share / 10)) % of its CPU"
	rig_start_hogs "$scene_load_share"
	scene_until 30 scene_server || { scene_fail "no verdict 'server / reader-starved' within 30 s"; return; }
	scene_until 20 scene_raised || { scene_fail "raise-cpu did not run"; return; }
	scene_high_weight=$(rig_weight)
	scene_until 40 scene_relieved || { scene_fail "not mitigated within 40 s after raise-cpu"; return; }
	scene_until 15 scene_ok || { scene_fail "dwell did not fall"; return; }
	relief_ns=$watch_p99
	scene_log | grep -E 'ALERT|HOOK|MITIGATED' | sed 's/^/   dwelld: /'
	say "   relieved: the load goes on, the weight stays, and no second alert may come"
	scene_while "$((short ? 10 : 46))" scene_stays || { scene_fail "a second alert, or the weight did not stay"; return; }
	scene_row "server load" \
		"mean $(scene_ms "$scene_worst_mean") p99 $(scene_ms "$scene_worst_p99") max $(scene_ms "$scene_worst_max")" \
		"server / reader-starved" "76 ms, max 193 ms ALERT"
	scene_row "  by its own clock" "p99 $(scene_own_age p99) ms max $(scene_own_age max) ms" "" ""
	scene_row "  raise-cpu" "p99 $(scene_ms "$relief_ns"), then $(scene_ms "$watch_p99"), load still on" \
		"mitigated, no second alert" "-"
}

scene_release()
{
	scene_begin release "the burners end: the cause is gone, so the remedy is taken back"
	rig_end "$rig_hogs"
	rig_hogs=''
	[ "$(rig_weight)" != "$scene_low_weight" ] || { scene_fail "nothing to take back"; return; }
	scene_until 60 scene_undone || {
		say "   not yet; without the burners this host is $watch_busy % busy, and the undo waits for less than 80 %"
		scene_until 180 scene_undone || { scene_fail "no undo within 240 s"; return; }
	}
	scene_log | grep -E 'HOOK|RESOLVED' | sed 's/^/   dwelld: /'
	scene_row "  load ends" "weight back to $(rig_weight)" "undone: cause gone" "-"
}

scene_impairment()
{
	scene_begin network "network impairment: 8 % loss, 40 ms delay and up to 200 ms more, on all streams"
	scene_weight=$(rig_weight)
	kill -USR1 "$rig_relay"
	scene_until 40 scene_network || { scene_fail "no verdict 'network' within 40 s"; return; }
	scene_while "$((short ? 6 : 15))" scene_network_only || { scene_fail "not network throughout"; return; }
	scene_log | grep -E 'ALERT|HOOK' | sed 's/^/   dwelld: /'
	[ "$(scene_count 'HOOK')" = 0 ] || { scene_fail "a hook ran for a network fault"; return; }
	[ "$watch_p50" -lt 500000 ] || { scene_fail "dwell was not in microseconds"; return; }
	scene_row network "p50 $watch_p50_text p99 $watch_p99_text max $watch_max_text" "network, nothing changed" \
		"33 us OK, loss and RTT up"
	scene_row "  RTP at arrival" "loss $watch_loss_text jitter $watch_jitter_text" "" ""
}

# What a void attempt left is put right before the next: a daemon that has seen strange things (an alert in force, flapping)
# would judge the repetition by them, so it starts anew, with nothing owed.
scene_settle()
{
	[ -z "$rig_hogs" ] || rig_end "$rig_hogs"
	rig_hogs=''
	watch_stop
	rm -rf "$work_dir/state" "$work_dir/hook/hooks"
	rig_set_weight dwelld-demo/sfu "$rig_sfu_low"
	watch_start "$work_dir/demo.conf"
	scene_until 120 scene_settled
}

scene_run()	# FUNCTION
{
	local table=$scene_table result

	for scene_attempt in 0 1 2; do
		"$1"
		result=$?
		kill -USR2 "$rig_relay"
		[ "$1" = scene_release ] && break	# an undo does not depend on the senders
		scene_is_void || { [ $result != 0 ] && scene_too_light; } || break
		say "   void: repeated"
		scene_table=$table
		result=1
		scene_settle
	done
	[ $result = 0 ] || { scenes_failed=1; scene_row "$scene_name" "-" "NOT SHOWN" "-"; }
}

scene_cost()
{
	local line dwell other runq daemon

	say
	say "== cost: 9000 packets/s, straight to a server that only reads, without the relay, whose own packets would count"
	rig_end "$rig_sender"
	rig_end "$rig_server"
	rig_start_server 10
	rig_start_senders sfu 20 20 16	# 1000 + 8000 packets/s
	host_await sleep 5	# with the measurement itself more than dwelld's window of 10 s
	line=$(host_await "$work_dir/bin/demo-cost" $watch_pid "$((short ? 6 : 20))") ||
		{ scene_row cost "not measured" "-" "0.36 %"; return; }
	watch_read
	read -r dwell other runq daemon < <(awk -v line="$line" -v rate="$watch_rate" 'BEGIN {
		n = split(line, word, /[ =]/); for (i = 1; i < n; i += 2) v[word[i]] = word[i + 1]
		if (rate <= 0) { print "- - - -"; exit }
		scale = 100 * 9000 / rate
		printf "%.2f %.2f %.2f %.2f\n", scale * v["dwell_share"], scale * v["other_share"], scale * v["runq_share"],
			100 * v["process_share"] }')
	printf '   %s\n' "${line//_run_ns/_ns_a_run}" | fold -s -w 110
	say "   The kernel's own run-time count of dwelld's BPF programs, less what counting costs; $watch_rate packets/s were"
	say "   measured, scaled to 9000. The run-queue programs follow the context switches: here sender and server both wake"
	say "   for every packet."
	if [ "$watch_rate" -lt 8100 ] || [ "$watch_rate" -gt 9900 ]; then
		say "   others' UDP was measured too: the figures are of the mixture, the run queue's is not to be used"
	fi
	scene_row "cost, 9000/s: dwell" "$dwell % of a core" "-" "0.36 %"
	scene_row "  RTP drops softirq" "$other % of a core" "-" "not measured there"
	scene_row "  run queue" "$runq % of a core" "-" "not measured there"
	scene_row "  the daemon" "$daemon % of a core" "-" "not said"
}

# Ten seconds of what this host does by itself, with the shipped rules, before anything is made.
scene_own_services()
{
	say
	say "== this host's own UDP services, ten seconds, mode observe"
	echo 'mode = "observe";' >"$work_dir/own.conf"
	watch_start "$work_dir/own.conf"
	host_await sleep 11	# the first window of 10 s must be full
	watch_status | sed 's/^/   /'
	watch_stop
}

scenes_all()
{
	watch_config "$work_dir/demo.conf"
	watch_start "$work_dir/demo.conf"
	scene_low_weight=$(rig_weight)
	scene_run scene_baseline
	scene_run scene_load
	scene_run scene_release
	scene_run scene_impairment
	scene_cost
	say
	printf '%-19s  %-42s  %-28s  %s\n%s' scene "dwell (dwelld, windows of 10 s)" verdict published "$scene_table"
}
