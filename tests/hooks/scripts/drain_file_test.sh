#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# drain_file_test.sh HOOK - drain-file in a directory of its own.
set -u
hook=$1
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

tmp=$(mktemp -d /tmp/dwelld-drain-file-XXXXXX)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP
file=$tmp/run/drain
mkdir "$tmp/run"
umask 077	# as a hook is run

drain() {	# ACTION [ARGUMENTS]
	drain_action=$1
	shift
	run hook_env DWELLD_ACTION="$drain_action" "$hook" --file "$file" "$@"
}
leftovers() { find "$tmp/run" -mindepth 1 ! -name drain | wc -l; }

run "$hook" --help
expect '--help' 0 '*'
run hook_env DWELLD_ACTION='do' "$hook"
expect 'no file' 64 '*--file*'
run hook_env DWELLD_ACTION='do' "$hook" --file run/drain
expect 'a relative path' 64 '*absolute*'
run hook_env DWELLD_ACTION='do' "$hook" --file "$tmp/"
expect 'a directory name' 64 '*--file*'
drain notify
expect 'an action it does not know' 64 '*DWELLD_ACTION*'
drain 'do' --mode 9
expect 'a mode that is none' 64 '*octal*'
drain 'do' --text 'a
b'
expect 'a text of two lines' 64 '*one line*'

drain status
expect 'status before' 0 'state=none*'
drain check
expect 'check before' 0 'can write*'
drain 'do' --dry-run
expect 'dry run of do' 0 "would write 'drain'*"
is 'dry run writes nothing' "$([ -e "$file" ] && echo there)" ''
drain 'do'
expect 'do' 0 "drained file=$file"
is 'first line is for the reader' "$(head -n 1 "$file")" drain
is 'second line says whose it is' "$(sed -n 2p "$file")" '# dwelld-drain-file sfu h-starved-sfu-1'
is 'another user can read it' "$(stat -c %a "$file")" 644
is 'no temporary file is left' "$(leftovers)" 0
inode=$(stat -c %i "$file")
drain 'do'
expect 'do again' 0 'drained already by us*'
is 'do again does not even touch it' "$(stat -c %i "$file")" "$inode"
drain status
expect 'status while drained' 0 'state=ours by=h-starved-sfu-1*'
run hook_env DWELLD_ALERT_ID=h-starved-sfu-2 DWELLD_ACTION='do' "$hook" --file "$file" --text 'drain 10%' --mode 0640
expect 'the next alert takes it over' 0 'drained file=*'
is 'with its text and id' "$(head -n 1 "$file") $(sed -n 2p "$file")" 'drain 10% # dwelld-drain-file sfu h-starved-sfu-2'
is 'and mode' "$(stat -c %a "$file")" 640
run hook_env DWELLD_TARGET=turn DWELLD_ACTION='do' "$hook" --file "$file"
expect 'another target does not take it over' 80 '*not by us*'
run hook_env DWELLD_TARGET=turn DWELLD_ACTION=undo "$hook" --file "$file"
expect 'nor does it undo it' 80 'left alone*'
run hook_env DWELLD_TARGET=sf DWELLD_ACTION=undo "$hook" --file "$file"
expect 'nor does one whose name begins alike' 80 'left alone*'
drain undo --dry-run
expect 'dry run of undo' 0 'would remove*'
is 'dry run removes nothing' "$([ -e "$file" ] && echo there)" there
drain undo
expect 'undo' 0 'removed*'
is 'it is gone' "$([ -e "$file" ] || echo gone)" gone
drain undo
expect 'undo again' 0 'nothing to remove*'

echo drain >"$file"
drain 'do'
expect 'a foreign file: do' 80 '*not by us*'
drain undo
expect 'a foreign file: undo' 80 'left alone*'
drain check
expect 'a foreign file: check' 80 '*not by us*'
is 'a foreign file is as it was' "$(cat "$file")" drain
: >"$file"
drain undo
expect 'an empty foreign file' 80 'left alone*'
rm "$file"
ln -s "$tmp/elsewhere" "$file"
drain 'do'
expect 'a symbolic link, even a dangling one' 69 'refused: *no regular file*'
is 'nothing was written through it' "$([ -e "$tmp/elsewhere" ] || echo nothing)" nothing
rm "$file"
mkdir "$file"
drain 'do'
expect 'a directory' 69 'refused: *no regular file*'
rmdir "$file"
mkfifo "$file"
drain 'do'
expect 'a fifo does not hang it' 69 'refused: *no regular file*'
drain undo
expect 'a fifo: undo' 80 'left alone*'
rm "$file"
run hook_env DWELLD_ACTION='do' "$hook" --file "$tmp/nowhere/drain"
expect 'no directory' 69 'refused: there is no directory*'
run hook_env DWELLD_ACTION='do' "$hook" --file /proc/self/drain
expect 'a directory that takes no file' 73 'refused: cannot write*'
run hook_env DWELLD_ALERT_ID='a b
# dwelld-drain-file turn x' DWELLD_ACTION='do' "$hook" --file "$file"
is 'an alert id cannot forge a line' "$code $(wc -l <"$file")" '0 2'
drain undo
expect 'and is undone' 0 'removed*'
done_testing
