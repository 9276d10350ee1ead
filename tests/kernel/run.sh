#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run.sh - boot Debian's own kernels and hold every rung of every signal against the receiver's own clock and counts.
#
# usage: run.sh [--kernels "5.10 6.1 6.12 sid"] [--build DIR] [--markdown]
#   --build DIR   a build with tests (default: one is made in a temporary directory)
#   --markdown    print the table as Markdown too
# Needs: qemu-system-x86_64, busybox (static), cpio. Emulated without KVM, so times are relative: see truth --relative.
# A kernel that cannot be fetched is one skip. A rung that a kernel cannot have passes only if the program itself says why.
# A guest that the emulator itself let down (see broken()) is booted once more, and said so.
# KERNEL_JOBS=FILE runs other jobs (see init), KERNEL_LOGS=DIR keeps the consoles; kernels are kept in $XDG_CACHE_HOME or
# /var/cache, in dwelld-kernels. Ends with "N passed, N failed, N skipped".
set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
kernels='5.10 6.1 6.12 sid' build='' markdown=''
cache=${XDG_CACHE_HOME:-/var/cache}/dwelld-kernels
boot_seconds=300
work=$(mktemp -d)
emulator=''

cleanup()
{
	[ -z "$emulator" ] || kill "$emulator" 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

while [ $# -gt 0 ]; do
	case $1 in
	--kernels) kernels=$2; shift ;;
	--build) build=$2; shift ;;
	--markdown) markdown=--markdown ;;
	*) sed -n '4,13s/^# \{0,1\}//p' "$0"; exit 2 ;;
	esac
	shift
done

nothing()
{
	echo "   skip: $*"
	echo "0 passed, 0 failed, $(wc -w <<<"$kernels") skipped"
	exit 0
}

# What one dwell rung is held against; the whole list takes too long on an emulated machine.
cases=("recv, stall 20 ms" "recvmmsg(32)" MSG_PEEK io_uring "dual-stack" UDP_GRO "two producers" "other network" "overflow, 16"
	"socket filter" "C52" "close with" "10 queued" "never read, not")

# busybox sh splits the command at spaces: a case's name stands in a file
jobs_of()
{
	local r

	for r in fentry kprobe consume fifo; do
		echo "dwell=$r 120 /test/dwell $r"
	done
	echo "best 60 /test/signals"
	echo "runq=sched_info 30 /test/signals --rungs runq=sched_info runq"
	echo "drops=socket 30 /test/signals --rungs drops=socket drops"
}

image()
{
	local root=$work/root b lib c

	mkdir -p "$root"/{bin,lib,lib64,test,proc,sys,dev,tmp,run}
	cp "$(command -v busybox)" "$root/bin/busybox"
	cp "$here/init" "$root/init"
	chmod 755 "$root/init"
	for b in bpf/truth kernel/signals; do
		cp "$build/tests/$b" "$root/test/"
		ldd "$build/tests/$b" | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\// { print $1 }' | while read -r lib; do
			case $lib in
			*/ld-linux*) cp -L "$lib" "$root/lib64/" ;;
			*) cp -L "$lib" "$root/lib/" ;;
			esac
		done
	done
	{
		printf '#!/bin/sh\nexec /test/truth --relative --rungs "dwell=$1"'
		for c in "${cases[@]}"; do
			printf ' "%s"' "$c"
		done
		echo
	} >"$root/test/dwell"
	chmod 755 "$root/test/dwell"
	if [ -n "${KERNEL_JOBS:-}" ]; then cat "$KERNEL_JOBS"; else jobs_of; fi >"$root/job"
	(cd "$root" && find . | cpio -o -H newc --quiet) | gzip -1 >"$work/initramfs"
}

boot()
{
	local image=$1 console=$2 start=$SECONDS status

	timeout -k 5 "$boot_seconds" nice -n 19 qemu-system-x86_64 -machine q35 -accel tcg,thread=multi -cpu max -smp 2 -m 1024 \
		-display none -no-reboot -nodefaults -monitor none -serial "file:$console" -kernel "$image" -initrd "$work/initramfs" \
		-append "console=ttyS0 quiet loglevel=3 mitigations=off panic=-1 rdinit=/init" </dev/null >"$console.qemu" 2>&1 &
	emulator=$!
	wait "$emulator"
	status=$?
	emulator=''
	took=$((SECONDS - start))
	return "$status"
}

# An instruction that one virtual CPU patches by way of int3 may still be an int3 to the other when the kernel has forgotten it:
# the oops then stands at a branch that switches a tracepoint, and the bytes there are whole again.
broken()
{
	grep -q 'Oops: int3\|^\[.*\] int3: 0000' "$1"
}

command -v qemu-system-x86_64 >/dev/null || nothing 'no qemu-system-x86_64'
command -v cpio >/dev/null || nothing 'no cpio'
busybox 2>/dev/null | grep -q . || nothing 'no busybox'
if [ -z "$build" ]; then
	build=$work/build
	{ meson setup "$build" "$top" -Dtest_hooks=true && ninja -C "$build"; } >"$work/build.log" 2>&1 ||
		{ tail -n 30 "$work/build.log"; echo '0 passed, 1 failed, 0 skipped'; exit 1; }
fi
mkdir -p "$cache" 2>/dev/null || nothing "$cache cannot be made"
image || { echo '0 passed, 1 failed, 0 skipped'; exit 1; }

seen=()
for k in $kernels; do
	if ! vmlinuz=$(bash "$here/fetch.sh" "$k" "$cache" 2>"$work/why"); then
		echo "skip $k $(tail -n 1 "$work/why")" >>"$work/skipped"
		continue
	fi
	echo "-- kernel $k: $(cat "$cache/$k/package")"
	took=0
	boot "$vmlinuz" "$work/console-$k" || echo "emulator: status $?, after $took s" >>"$work/console-$k"
	if broken "$work/console-$k"; then
		echo "   the emulator ran an int3 that was no longer there; booted again"
		[ -z "${KERNEL_LOGS:-}" ] || cp "$work/console-$k" "$KERNEL_LOGS/console-$k.broken"
		boot "$vmlinuz" "$work/console-$k" || echo "emulator: status $?, after $took s" >>"$work/console-$k"
	fi
	echo "   booted, tested and off in $took s"
	[ -z "${KERNEL_LOGS:-}" ] || cp "$work/console-$k" "$KERNEL_LOGS/"
	seen+=("$k" "$work/console-$k")
done
touch "$work/skipped"
python3 "$here/report.py" $markdown --skipped "$work/skipped" "${seen[@]}"
