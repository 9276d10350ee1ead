# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# watch.sh - runs dwelld in the foreground and reads one status a second, as an operator's dwellctl would.

watch_pid=''
watch_verdict='-' watch_causes='-' watch_rule='-' watch_hook='-'
watch_p50=-1 watch_p99=-1 watch_max=-1 watch_mean=-1 watch_rate=-1 watch_busy=-1	# ns, packets/s, percent; -1 unknown
watch_p50_text='-' watch_p99_text='-' watch_max_text='-' watch_runq_text='-' watch_loss_text='-' watch_jitter_text='-'
# shellcheck disable=SC2016	# jq's own variables
watch_query='
def time: if . == null then "-" elif . < 999500 then "\(. / 1000 | round)us"
	elif . < 99950000 then "\(. / 100000 | round / 10)ms" else "\(. / 1000000 | round)ms" end;
def percent: if . == null then "-" else "\(. * 1000 | round / 10)%" end;
def raw: if . == null then -1 else floor end;
([.targets[] | select(.name == "demo-sfu")][0] // {}) as $t | ($t.signals // {}) as $s
| ([.rules[] | select(.name == "reader-starved" and .target == "demo-sfu")][0] // {}) as $r
| ([.hooks[] | select(.name == "raise-cpu" and .target == "demo-sfu")][0] // {}) as $h
| ([.targets[] | select(.name == "host")][0].signals.dwell.rate // $s.dwell.rate) as $rate
| [$t.verdict, ($t.causes // [] | join(",")), $r.state, $h.state,
   ($s.dwell.p50_ns | raw), ($s.dwell.p99_ns | raw), ($s.dwell.max_ns | raw), ($s.dwell.mean_ns | raw), ($rate | raw),
   (if .host.cpu.busy == null then -1 else .host.cpu.busy * 100 | floor end),
   ($s.dwell.p50_ns | time), ($s.dwell.p99_ns | time), ($s.dwell.max_ns | time),
   (($s.runq.p99_ns // $s.runq.max_ns) | time), ($s.rtp.loss | percent), ($s.rtp.jitter_ns | time)]
| map(if . == null or . == "" then "-" else tostring end) | join(" ")'

watch_config()	# FILE: from the demo's own
{
	sed "s|DEMO_DIR|$work_dir|" "$source_dir/tools/demo.d/demo.conf" >"$1"
}

watch_start()	# CONFIG
{
	local deadline=$((SECONDS + 30))

	mkdir -p "$work_dir"/{run,state,hook/runs}
	: >"$work_dir/dwelld.log"
	DWELLD_RUN_DIR=$work_dir/run DWELLD_STATE_DIR=$work_dir/state DWELLD_HOOK_DIR=$work_dir/hook/runs \
		DWELLD_RUNNER=$work_dir/bin/dwelld-hook-run "$work_dir/bin/dwelld" --config "$1" \
		</dev/null >>"$work_dir/dwelld.log" 2>&1 {host_stdout}>&- &
	watch_pid=$!
	until watch_status --json >"$work_dir/status.json" 2>/dev/null; do
		kill -0 $watch_pid 2>/dev/null || { cat "$work_dir/dwelld.log" >&2; die "dwelld ended"; }
		[ $SECONDS -lt $deadline ] || { cat "$work_dir/dwelld.log" >&2; die "dwelld does not answer"; }
		sleep 0.2
	done
}

watch_status()
{
	"$work_dir/bin/dwellctl" status --socket "$work_dir/run/control.sock" "$@"
}

watch_stop()
{
	local deadline=$((SECONDS + 10))

	[ -n "$watch_pid" ] || return 0
	cat /proc/$watch_pid/fdinfo/* 2>/dev/null | awk '$1 == "link_id:" { print $2 }' >>"$work_dir/links"
	kill -TERM $watch_pid 2>/dev/null
	while kill -0 $watch_pid 2>/dev/null && [ $SECONDS -lt $deadline ]; do sleep 0.1; done
	kill -KILL $watch_pid 2>/dev/null && say "   dwelld did not end within 10 s and was killed"
	wait $watch_pid 2>/dev/null
	watch_pid=''
}

# One reading into watch_* variables; keeps the last one when the daemon does not answer (and says so by watch_verdict).
watch_read()
{
	local line

	watch_verdict='no answer'
	watch_status --json >"$work_dir/status.json" 2>/dev/null || return
	line=$(jq -r "$watch_query" "$work_dir/status.json") || return
	read -r watch_verdict watch_causes watch_rule watch_hook watch_p50 watch_p99 watch_max watch_mean watch_rate \
		watch_busy watch_p50_text watch_p99_text watch_max_text watch_runq_text watch_loss_text watch_jitter_text <<<"$line"
}

watch_head()
{
	printf '%-9s %4s  %-23s  %-8s  %-14s  %-8s %-28s %-9s %s\n' scene time 'dwell p50    p99    max' 'runq p99' \
		'RTP loss jitter' verdict causes raise-cpu weight
}

watch_line()	# SCENE SECONDS
{
	printf '%-9s %3ds  %7s %7s %7s  %8s  %6s %8s  %-8s %-28s %-9s %s\n' "$1" "$2" "$watch_p50_text" "$watch_p99_text" \
		"$watch_max_text" "$watch_runq_text" "$watch_loss_text" "$watch_jitter_text" "$watch_verdict" \
		"$watch_causes" "$watch_hook" "$(rig_weight)"
}
