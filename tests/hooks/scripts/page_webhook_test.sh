#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# page_webhook_test.sh HOOK - page-webhook against a listener of its own on the loopback.
set -u
hook=$1
here=$(dirname "$0")
# shellcheck source=lib.sh
. "$here/lib.sh"

for tool in curl python3; do
	command -v "$tool" >/dev/null || { skip "$tool is not installed"; exit 77; }
done
tmp=$(mktemp -d /tmp/dwelld-page-webhook-XXXXXX)
listener=
trap '[ -n "$listener" ] && kill "$listener"; rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP
mkdir "$tmp/cred" "$tmp/no-cred"
secret=s3cr3t-$$-\"quote\\back
printf '%s\nsecond line\n' "$secret" >"$tmp/cred/token"
python3 "$here/webhook_listener.py" "$tmp" &
listener=$!
wait_for 30 test -s "$tmp/port" || { not_ok 'the listener did not start'; done_testing; }
base=http://127.0.0.1:$(cat "$tmp/port")
event='{"event":"fire","summary":"a \"quoted\" text, with ünïcode"}'

page() {	# ARGUMENTS: as dwelld calls it
	rm -f "$tmp/request"
	run post "$@"
}
post() {
	printf '%s' "$event" | hook_env DWELLD_ACTION=notify CREDENTIALS_DIRECTORY="$tmp/cred" \
		DWELLD_DEADLINE=$(($(date +%s) + ${deadline:-30})) "$hook" "$@"
}
has() {	# NAME LINE: is a line of the last request
	if tr -d '\r' <"$tmp/request" | grep -qxF -- "$2"; then
		ok "$1"
	else
		not_ok "$1: no line '$2' in:"
		sed 's/^/    /' "$tmp/request"
	fi
}

run "$hook" --help
expect '--help' 0 '*'
run hook_env "$hook" </dev/null
expect 'no URL' 64 '*--url*'
run hook_env "$hook" --url "$base/200" --url-file x </dev/null
expect 'two URLs' 64 '*either*'
run hook_env "$hook" --url file:///etc/passwd </dev/null
expect 'a URL that is none of ours' 78 'refused: *'
run hook_env "$hook" --url "$base/200" --header 'A: b' </dev/null
expect 'a header that is no name' 64 '*--header*'
run hook_env DWELLD_ACTION='do' "$hook" --url "$base/200" </dev/null
expect 'a remedy it is not' 78 'refused: *'
run hook_env DWELLD_ACTION=check "$hook" --url "$base/200" </dev/null
expect 'check' 0 'can post*'

page --url "$base/200"
expect '200' 0 'posted http=200'
has 'the body is what came in' "$event"
has 'token' "Authorization: Bearer $secret"
has 'content type' 'Content-Type: application/json'
has 'a receiver can tell a repetition' 'Idempotency-Key: h-starved-sfu-1/1'
page --url "$base/200"
expect '200 again' 0 'posted http=200'
page --url "$base/204"
expect '204' 0 'posted http=204'
page --url "$base/200" --header X-Api-Key
has 'the header may have another name' "X-Api-Key: $secret"
page --url "$base/429"
expect '429: later, as long as it says' 75 '*http=429 retry_after=7'
page --url "$base/500"
expect '500: later' 75 '*http=500'
page --url "$base/503"
expect '503: later' 75 '*http=503'
page --url "$base/400"
expect '400: for good' 70 '*http=400'
page --url "$base/404"
expect '404: for good' 70 '*http=404'
page --url "$base/302"
expect 'a redirect is not followed' 70 '*http=302'
page --url "$base/cut"
expect 'a connection that is cut: later' 75 '*curl=*'
page --url http://127.0.0.1:1/
expect 'nobody listens: later' 75 '*curl=7'
page --url 'http://127.0.0.1:x/'
expect 'a URL that cannot be: not later' 78 'refused: *'
page --url "$base/200" --dry-run
expect 'dry run' 0 'would post*with a token'
is 'dry run sends nothing' "$([ -e "$tmp/request" ] && echo sent)" ''
run hook_env DWELLD_DEADLINE=$(($(date +%s) - 5)) "$hook" --url "$base/200" </dev/null
expect 'past the deadline nothing is begun' 75 '*no time left*'

printf '%s/200?key=u-%s\n' "$base" "$$" >"$tmp/cred/url"
page --url-file url
expect 'the URL as a credential' 0 'posted http=200'
has 'goes where it says' "POST /200?key=u-$$ HTTP/1.1"
case $out in
*"u-$$"*) not_ok "a secret URL is not printed: $out" ;;
*) ok 'a secret URL is not printed' ;;
esac
page --url-file "$tmp/nowhere"
expect 'no such URL file' 78 'refused: *'
: >"$tmp/no-cred/token"
run hook_env CREDENTIALS_DIRECTORY="$tmp/no-cred" "$hook" --url "$base/200" </dev/null
expect 'an empty token is no token' 78 'refused: *token*'
run hook_env DWELLD_ALERT_ID='x"
header = "X-Evil: 1' "$hook" --url "$base/200" </dev/null
is 'an alert id cannot forge a header' "$code $(grep -ci '^x-evil' "$tmp/request")" '0 0'

deadline=4
page --url "$base/hang"
expect 'a receiver that hangs: later, before the deadline' 75 'no answer within [1-3]s*'

# While it waits for an answer, nobody can see the secrets. /hold answers once the file "release" is there.
rm -f "$tmp/request"
printf '%s/hold#u-%s\n' "$base" "$$" >"$tmp/cred/url"
(deadline=60 post --url-file url >"$tmp/out" 2>&1; echo $? >"$tmp/code") &
waiter=$!
wait_for 30 test -s "$tmp/request" || not_ok 'the request did not arrive'
# the whole lists in a file first, so that no search of ours is among what is searched
cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' >"$tmp/seen"
: >"$tmp/release"
is 'curl is among the processes looked at' "$(grep -c -- '^--max-time$' "$tmp/seen")" 1
is 'the token is in no argument or environment' "$(grep -c -- "s3cr3t-$$" "$tmp/seen")" 0
is 'the secret URL is in no argument or environment' "$(grep -c -- "#u-$$" "$tmp/seen")" 0
wait "$waiter"
code=$(cat "$tmp/code") out=$(cat "$tmp/out")
last=$(tail -n 1 "$tmp/out")
expect 'and then the answer comes' 0 'posted http=200'
done_testing
