#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# raise_cpu_test.sh HOOK - raise-cpu on real v1 CPU cgroups of its own, on a made-up v2 tree, and with a made-up systemctl.
set -u
hook=$1
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

tmp=$(mktemp -d /tmp/dwelld-raise-cpu-XXXXXX)
state=$tmp/state
mkdir "$state"
v1=
children=

# shellcheck disable=SC2317 # called by the trap
remove_cgroups() { find "$v1" -depth -type d -exec rmdir {} + 2>/dev/null; }

# shellcheck disable=SC2317 # called by the trap
clean() {
	for pid in $children; do
		kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	done
	if [ -n "$v1" ]; then	# also what a killed timeout(1) left running
		find "$v1" -name cgroup.procs -exec cat {} + | while read -r pid; do
			kill -KILL "$pid"
		done
		wait_for 30 remove_cgroups || not_ok "$v1 is still there"
	fi
	rm -rf "$tmp"
}
trap clean EXIT
trap 'exit 1' INT TERM HUP

raise() {	# ACTION [NAME=VALUE]... -- ARGUMENTS
	action=$1
	shift
	vars=
	while [ "$1" != -- ]; do
		vars="$vars $1"
		shift
	done
	shift
	# shellcheck disable=SC2086 # split on purpose: no value here has a blank
	run hook_env STATE_DIRECTORY="$state" DWELLD_ACTION="$action" $vars "$hook" "$@"
}

tokens() { find "$state" -type f | wc -l; }

start() {	# DIRECTORY COMMAND...: a process in that cgroup; its pid in $pid
	where=$1
	shift
	sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$where" "$@" &
	pid=$!
	children="$children $pid"
	wait_for 30 grep -qx "$pid" "$where/cgroup.procs" || not_ok "process did not get into $where"
}

test_usage() {
	run "$hook" --help
	expect '--help' 0 '*old=WEIGHT new=WEIGHT.'
	run hook_env "$hook" --weight 0 'do'
	expect 'weight 0 is refused' 64 '*expected 1 to 10000*'
	run hook_env "$hook" --weight 10001 'do'
	expect 'weight 10001 is refused' 64 '*expected 1 to 10000*'
	run hook_env "$hook" --weight 1e3 'do'
	expect 'a weight that is no number is refused' 64 '*expected 1 to 10000*'
	run hook_env "$hook" --wait 'do'
	expect 'an unknown option is refused' 64 "*unknown argument '--wait'*"
	run hook_env "$hook"
	expect 'no action is refused' 64 '*DWELLD_ACTION*'
	run hook_env DWELLD_ACTION=do "$hook"
	expect 'without STATE_DIRECTORY nothing is done' 78 '*STATE_DIRECTORY*'
}

# ---- real v1 ----
test_v1() {
	a=$v1/a
	mkdir "$a" "$v1/b"
	start "$a" sleep 300
	one=$pid
	start "$v1/b" sleep 300
	two=$pid

	raise 'do' DWELLD_PIDS="$one" DWELLD_DRY_RUN=1 --
	expect 'v1 dry run says what it would do' 0 'would raise old=100 new=1000 *'
	is 'v1 dry run changes nothing' "$(cat "$a/cpu.shares") $(tokens)" '1024 0'
	raise 'do' DWELLD_PIDS="$one" -- --dry-run
	expect 'v1 --dry-run too' 0 'would raise old=100 new=1000 *'
	is 'v1 --dry-run changes nothing' "$(cat "$a/cpu.shares") $(tokens)" '1024 0'
	raise check DWELLD_PIDS="$one" --
	expect 'v1 check' 0 'weight=1000 can be given*'

	raise 'do' DWELLD_PIDS="$one" --
	expect 'v1 do' 0 'raised old=100 new=1000 *'
	is 'v1 do wrote the shares' "$(cat "$a/cpu.shares")" 10240
	raise 'do' DWELLD_PIDS="$one" --
	expect 'v1 do again is the same' 0 'already raised by us old=100 new=1000 *'
	is 'v1 shares are as after the first' "$(cat "$a/cpu.shares") $(tokens)" '10240 1'
	raise status DWELLD_PIDS="$one" --
	expect 'v1 status' 0 'ours=yes now=1000 *'
	raise undo DWELLD_PIDS="$one" DWELLD_DRY_RUN=1 --
	expect 'v1 dry run of undo' 0 'dry run*'
	is 'v1 dry run of undo changes nothing' "$(cat "$a/cpu.shares") $(tokens)" '10240 1'
	raise undo DWELLD_PIDS="$one" --
	expect 'v1 undo' 0 'put back old=1000 new=100'
	is 'v1 undo wrote the old shares' "$(cat "$a/cpu.shares") $(tokens)" '1024 0'
	raise undo DWELLD_PIDS="$one" --
	expect 'v1 undo again is the same' 0 'nothing to undo*'
	is 'v1 shares are still the old ones' "$(cat "$a/cpu.shares")" 1024

	echo 777 >"$a/cpu.shares"
	raise 'do' DWELLD_PIDS="$one" -- --weight 500
	is 'v1 --weight' "$code $(cat "$a/cpu.shares")" '0 5120'
	raise undo --
	is 'v1 an odd old number comes back exactly' "$code $(cat "$a/cpu.shares")" '0 777'
	echo 20480 >"$a/cpu.shares"
	raise 'do' DWELLD_PIDS="$one" --
	expect 'v1 already higher, not by us' 80 '*not by us*'
	is 'v1 then nothing is kept or changed' "$(cat "$a/cpu.shares") $(tokens)" '20480 0'
	echo 1024 >"$a/cpu.shares"

	raise 'do' DWELLD_PIDS="$one,$two" --
	is 'v1 two processes in two cgroups: both' "$code $(cat "$a/cpu.shares") $(cat "$v1/b/cpu.shares")" '0 10240 10240'
	echo 4096 >"$v1/b/cpu.shares"
	raise undo --
	expect 'v1 what somebody else changed is left alone' 80 '*/b=400'
	is 'v1 the other is put back' "$(cat "$a/cpu.shares") $(cat "$v1/b/cpu.shares") $(tokens)" '1024 4096 0'
	echo 1024 >"$v1/b/cpu.shares"

	raise 'do' DWELLD_PIDS="$one" --
	echo 1024 >"$a/cpu.shares"
	raise 'do' DWELLD_PIDS="$one" --
	is 'v1 a raise that was lost is done again' "$code $(cat "$a/cpu.shares")" '0 10240'
	echo "$one" >"$v1/b/cgroup.procs"
	raise 'do' DWELLD_PIDS="$one" --
	is 'v1 a moved process: new place raised, old one not forgotten' "$code $(cat "$v1/b/cpu.shares") $(tokens)" '0 10240 1'
	raise undo --
	is 'v1 both put back' "$code $(cat "$a/cpu.shares") $(cat "$v1/b/cpu.shares")" '0 1024 1024'

	raise 'do' DWELLD_PIDS="$two" --
	kill -KILL "$one" "$two"
	wait "$one" "$two" 2>/dev/null
	wait_for 30 rmdir "$v1/b" 2>/dev/null
	raise undo --
	expect 'v1 a cgroup that is gone owes nothing' 0 'put back gone=1'
	case $out in
	*'/b is gone'*) ok 'v1 and the output says so' ;;
	*) not_ok "v1 and the output says so: $out" ;;
	esac
	raise 'do' DWELLD_PIDS="$one" --
	expect 'v1 no live process, no cgroup' 69 'refused: no cgroup of sfu*'
	raise 'do' DWELLD_CGROUP="${a#/sys/fs/cgroup/cpu}" --
	is 'v1 by DWELLD_CGROUP' "$code $(cat "$a/cpu.shares")" '0 10240'
	raise undo --
	is 'v1 by DWELLD_CGROUP undone' "$code $(cat "$a/cpu.shares")" '0 1024'
	raise 'do' DWELLD_PIDS=$$ --
	case $(grep -E '^[0-9]+:([^:]*,)?cpu(,[^:]*)?:' /proc/$$/cgroup) in
	*:/) expect 'the root cgroup is refused' 69 'refused: *root cgroup*' ;;
	*) skip 'the root cgroup is refused: this test runs in a child cgroup' ;;
	esac
}

test_v1_refusals() {
	mkdir -p "$v1/kubepods/pod1" "$v1/q/in" "$v1/i"
	start "$v1/kubepods/pod1" sleep 300
	raise 'do' DWELLD_PIDS="$pid" --
	expect 'a Kubernetes pod is left to kubelet' 69 'refused: *Kubernetes*'
	is 'its shares are untouched' "$(cat "$v1/kubepods/pod1/cpu.shares") $(tokens)" '1024 0'

	echo 10000 >"$v1/q/cpu.cfs_quota_us"	# 10 % of a CPU, set on the parent
	start "$v1/q/in" sleep 300
	raise 'do' DWELLD_PIDS="$pid" --
	is 'a quota that is not used up is no reason to refuse' "$code $(cat "$v1/q/in/cpu.shares")" '0 10240'
	raise undo --
	# burns 10 % of one CPU for as long as the test below takes, at most a minute
	start "$v1/q/in" timeout -s KILL 60 sh -c 'while :; do :; done'
	# shellcheck disable=SC2016 # awk's
	wait_for 30 awk '$1 == "nr_throttled" && $2 > 2 { found = 1 } END { exit !found }' "$v1/q/cpu.stat" ||
		not_ok 'the quota does not throttle here'
	raise 'do' DWELLD_PIDS="$pid" --
	expect 'held back by its quota: refused' 69 'refused: *CPU quota*throttled=[1-9]*'
	is 'then nothing is kept or changed' "$(cat "$v1/q/in/cpu.shares") $(tokens)" '1024 0'
	raise check DWELLD_PIDS="$pid" --
	expect 'check says so too' 69 'refused: *CPU quota*'
	echo -1 >"$v1/q/cpu.cfs_quota_us"
	raise 'do' DWELLD_PIDS="$pid" --
	is 'raised once the quota is gone' "$code $(cat "$v1/q/in/cpu.shares")" '0 10240'
	echo 10000 >"$v1/q/cpu.cfs_quota_us"
	raise 'do' DWELLD_PIDS="$pid" --
	expect 'what is raised already is never called refused' 0 'already raised by us*'
	raise undo --
	while read -r burner; do kill -KILL "$burner"; done <"$v1/q/in/cgroup.procs"
	is 'and undone under quota' "$code $(cat "$v1/q/in/cpu.shares")" '0 1024'

	if echo 1 >"$v1/i/cpu.idle" 2>/dev/null; then
		start "$v1/i" sleep 300
		raise 'do' DWELLD_PIDS="$pid" --
		expect 'a cgroup marked idle by its owner is left so' 69 'refused: *idle*'
	else
		skip 'cpu.idle: not in this kernel'
	fi
}

test_realtime() {
	# in the root cgroup: a real-time thread cannot be in a child CPU cgroup without a budget of its own
	chrt -f 1 sleep 300 &
	pid=$!
	children="$children $pid"
	if ! wait_for 30 sh -c "chrt -p $pid 2>/dev/null | grep -q FIFO"; then
		skip 'real-time readers: SCHED_FIFO is refused here'
		return
	fi
	raise 'do' DWELLD_PIDS="$pid" --
	expect 'real-time readers: refused' 69 'refused: *real-time*'
}

# ---- a made-up v2 tree ----
make_v2() {
	mkdir -p "$tmp/v2/sys.slice/sfu.service" "$tmp/v2/kubepods.slice/p"
	echo 'cpuset cpu io memory' >"$tmp/v2/cgroup.controllers"
	for d in sys.slice sys.slice/sfu.service kubepods.slice/p; do
		echo 100 >"$tmp/v2/$d/cpu.weight"
		echo 'max 100000' >"$tmp/v2/$d/cpu.max"
		printf 'usage_usec 1\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n' >"$tmp/v2/$d/cpu.stat"
	done
}

test_v2() {
	w=$tmp/v2/sys.slice/sfu.service/cpu.weight
	raise 'do' DWELLD_CGROUP=/sys.slice/sfu.service -- --cgroup-root "$tmp/v2" --weight 800
	expect 'v2 do' 0 'raised old=100 new=800 cgroup=/sys.slice/sfu.service'
	is 'v2 weight' "$(cat "$w")" 800
	raise 'do' DWELLD_CGROUP=/sys.slice/sfu.service -- --cgroup-root "$tmp/v2" --weight 800
	expect 'v2 do again' 0 'already raised by us old=100 new=800*'
	raise undo -- --cgroup-root "$tmp/v2" --weight 800
	expect 'v2 undo' 0 'put back old=800 new=100'
	is 'v2 old weight' "$(cat "$w") $(tokens)" '100 0'
	raise 'do' DWELLD_CGROUP=/kubepods.slice/p -- --cgroup-root "$tmp/v2"
	expect 'v2 kubepods' 69 'refused: *Kubernetes*'
	raise 'do' DWELLD_CGROUP=/../x -- --cgroup-root "$tmp/v2"
	expect 'v2 a path out of the tree' 69 'refused: *'
	echo '20000 100000' >"$tmp/v2/sys.slice/cpu.max"
	raise 'do' DWELLD_CGROUP=/sys.slice/sfu.service -- --cgroup-root "$tmp/v2"
	is 'v2 an unused quota does not matter' "$code $(cat "$w")" '0 1000'
	raise undo -- --cgroup-root "$tmp/v2"
	# a counter that grows while the hook looks
	sh -c 'n=0; while :; do n=$((n + 1)); printf "nr_periods 9\nnr_throttled %s\n" $n >"$0.new"; mv "$0.new" "$0"
		sleep 0.02; done' "$tmp/v2/sys.slice/cpu.stat" &
	children="$children $!"
	raise 'do' DWELLD_CGROUP=/sys.slice/sfu.service -- --cgroup-root "$tmp/v2"
	kill -KILL $!
	wait $! 2>/dev/null
	expect 'v2 held back by the quota of the slice' 69 'refused: *CPU quota*'
	is 'v2 then nothing changed' "$(cat "$w") $(tokens)" '100 0'
	echo 'max 100000' >"$tmp/v2/sys.slice/cpu.max"
	rm "$w"
	raise 'do' DWELLD_CGROUP=/sys.slice/sfu.service -- --cgroup-root "$tmp/v2"
	expect 'v2 a cgroup without the controller' 69 'refused: *no CPU weight*'
	echo 100 >"$w"
	mkdir "$tmp/none"
	raise 'do' DWELLD_CGROUP=/x -- --cgroup-root "$tmp/none"
	expect 'no CPU controller at all' 69 'refused: *no CPU controller*'
}

# ---- a made-up systemctl: $fake/weight is the property, $fake/effect says whether the kernel gets it ----
make_systemctl() {
	fake=$tmp/fake
	mkdir "$fake"
	echo '[not set]' >"$fake/weight"
	echo yes >"$fake/effect"
	echo loaded >"$fake/load"
	echo /sys.slice/sfu.service >"$fake/group"
	cat >"$fake/systemctl" <<EOF
#!/bin/sh
echo "\$*" >>$fake/calls
case \$1:\$3 in
show:LoadState) cat $fake/load ;;
show:CPUWeight) cat $fake/weight ;;
show:ControlGroup) cat $fake/group ;;
set-property:*)
	echo "\${4#CPUWeight=}" >$fake/weight
	[ "\$(cat $fake/effect)" = yes ] && echo "\${4#CPUWeight=}" >$tmp/v2/sys.slice/sfu.service/cpu.weight ;;
esac
[ "\$(cat $fake/load)" != broken ]
EOF
	# set-property --runtime -- UNIT CPUWeight=N
	sed -i 's/\${4#CPUWeight=}/\${5#CPUWeight=}/g' "$fake/systemctl"
	chmod 755 "$fake/systemctl"
}

by_unit() { raise "$1" DWELLD_UNIT=sfu@a\\x2db.service -- --cgroup-root "$tmp/v2" --systemctl "$fake/systemctl"; }

test_systemctl() {
	w=$tmp/v2/sys.slice/sfu.service/cpu.weight
	by_unit 'do'
	expect 'unit do' 0 'raised old=100 new=1000 unit=sfu@a\\x2db.service'
	is 'unit: property and kernel have it' "$(cat "$fake/weight" "$w" | tr '\n' ' ')" '1000 1000 '
	is 'unit: as one argument' "$(grep set-property "$fake/calls")" \
		'set-property --runtime -- sfu@a\x2db.service CPUWeight=1000'
	by_unit 'do'
	expect 'unit do again' 0 'already raised by us old=100 new=1000 *'
	by_unit undo
	expect 'unit undo' 0 'put back old=1000 new=100'
	is 'unit: the number is written, not an empty value' "$(cat "$fake/weight" "$w" | tr '\n' ' ')" '100 100 '
	by_unit undo
	expect 'unit undo again' 0 'nothing to undo*'
	is 'unit: only two changes were asked for in all' "$(grep -c set-property "$fake/calls")" 2

	echo no >"$fake/effect"
	by_unit 'do'
	expect 'unit: a weight without effect is refused and taken back' 69 'refused: *no effect*'
	is 'unit: property is back' "$(cat "$fake/weight") $(tokens)" '100 0'
	echo yes >"$fake/effect"

	by_unit 'do'
	echo 5 >"$tmp/v2/cpu.weight"	# of the root: nobody's
	: >"$fake/group"
	by_unit undo
	expect 'unit: one that was stopped meanwhile is put back for its next start' 0 'put back old=1000 new=100'
	is 'unit: its property is' "$(cat "$fake/weight")" 100
	echo /sys.slice/sfu.service >"$fake/group"
	rm "$tmp/v2/cpu.weight"
	echo 100 >"$w"

	by_unit 'do'
	echo broken >"$fake/load"
	by_unit undo
	expect 'unit: systemd that does not answer is not a unit that is gone' 1 'failed: *'
	is 'unit: and the old number is kept' "$(tokens)" 1
	echo not-found >"$fake/load"
	by_unit undo
	expect 'unit: gone' 0 'put back gone=1'
	echo loaded >"$fake/load"
	echo 2000 >"$fake/weight"
	by_unit 'do'
	expect 'unit: already higher' 80 '*not by us*'
	# a process of the unit that sits in a CPU cgroup elsewhere: the unit's weight says nothing about it
	echo 100 >"$fake/weight"
	if [ -n "$v1" ]; then
		mkdir -p "$v1/else"
		start "$v1/else" sleep 300
		raise 'do' DWELLD_UNIT=sfu.service DWELLD_PIDS="$pid" -- --systemctl "$fake/systemctl"
		is 'unit: a process outside of its cgroup is raised where it is' \
			"$code $(cat "$fake/weight") $(cat "$v1/else/cpu.shares")" '0 100 10240'
		raise undo -- --systemctl "$fake/systemctl"
		is 'unit: and put back there' "$code $(cat "$v1/else/cpu.shares")" '0 1024'
	fi
}

test_state() {
	echo 100 >"$tmp/v2/sys.slice/sfu.service/cpu.weight"
	if [ "$(id -u)" = 0 ]; then
		raise 'do' DWELLD_CGROUP=/sys.slice/sfu.service STATE_DIRECTORY=/proc/self/nowhere -- --cgroup-root "$tmp/v2"
		expect 'a state that cannot be written: nothing is changed' 74 'refused: *cannot write*'
		is 'weight is as before' "$(cat "$tmp/v2/sys.slice/sfu.service/cpu.weight")" 100
	fi
	raise 'do' DWELLD_TARGET=a/../b DWELLD_CGROUP=/sys.slice/sfu.service -- --cgroup-root "$tmp/v2"
	is 'a hostile target name stays inside the state directory' "$code $(tokens)" '0 1'
	raise undo DWELLD_TARGET=a_.._b -- --cgroup-root "$tmp/v2"
	expect 'and names that look alike are not mixed up' 0 'nothing to undo*'
	raise undo DWELLD_TARGET=a/../b -- --cgroup-root "$tmp/v2"
	expect 'undone by its own name' 0 'put back*'
}

test_usage
make_v2
if [ "$(id -u)" != 0 ]; then
	skip 'real cgroups: needs root'
elif [ -f /sys/fs/cgroup/cpu/cpu.shares ] && mkdir "/sys/fs/cgroup/cpu/dwelld-test.$$" 2>/dev/null; then
	v1=/sys/fs/cgroup/cpu/dwelld-test.$$
	test_v1
	test_v1_refusals
else
	skip 'real cgroups: no writable v1 cpu hierarchy at /sys/fs/cgroup/cpu'
fi
test_realtime
test_v2
make_systemctl
test_systemctl
test_state
done_testing
