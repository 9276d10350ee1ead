#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# includes - who may include whom. Prints each breach; ends with a count.
set -u
cd "${1:-.}" || exit 1
passed=0
failed=0

# room, then the pattern of quoted includes that its files may have
check()
{
	room=$1
	allowed=$2
	for file in $(git ls-files ":(glob)$room" 2>/dev/null || find . -path "./$room"); do
		bad=$(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file" | grep -Ev "^($allowed)$")
		if [ -n "$bad" ]; then
			echo "NOT OK $file may not include: $(echo "$bad" | tr '\n' ' ')"
			failed=$((failed + 1))
		else
			passed=$((passed + 1))
		fi
	done
}

own='[a-z0-9_]+\.h'
check 'src/decide/*.[ch]' "$own|bpf/hist_layout\.h"
check 'src/sense/*.[ch]' "$own|[a-z_]+\.skel\.h|decide/$own|bpf/(hist|map)_layout\.h"
check 'src/act/*.[ch]' "$own|decide/$own"
check 'src/run/*.[ch]' "$own|decide/$own|config_file\.h"
check 'src/ctl/*.[ch]' "$own|decide/$own"
check 'src/*.[ch]' "$own|builtin\.inc|(sense|decide|act)/$own|run/path_check\.h"
check 'bpf/*.[ch]' '[a-z_]+\.bpf\.h|(hist|map)_layout\.h'
for file in $(git ls-files tests | grep '\.[ch]$'); do
	if grep -qE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"[^"]*\.c"' "$file"; then
		echo "NOT OK $file includes a .c file"
		failed=$((failed + 1))
	else
		passed=$((passed + 1))
	fi
done

# decide/ is pure: no system header that does I/O, reads a clock or allocates behind its back
for file in $(git ls-files ':(glob)src/decide/*.[ch]'); do
	if grep -nE '#include <(unistd|fcntl|sys/|systemd/|bpf/|pthread|libconfig|syslog)' "$file"; then
		echo "NOT OK $file is not pure"
		failed=$((failed + 1))
	else
		passed=$((passed + 1))
	fi
done

for file in $(git ls-files '*.c' '*.h' '*.sh' 'hooks/*' | grep -v meson.build); do
	head -n 3 "$file" | grep -q SPDX-License-Identifier && { passed=$((passed + 1)); continue; }
	echo "NOT OK $file has no SPDX line"
	failed=$((failed + 1))
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
