# SPDX-License-Identifier: GPL-2.0-or-later
# bash completion for dwellctl: verbs, options, and the targets and hooks that the running daemon knows
_dwellctl_names()
{
	# names of the daemon's answer; silent when there is no daemon or no right to ask
	dwellctl status --json 2>/dev/null | awk -v want="\"$1\":" '
		$1 == want { inside = 1; next }
		inside && /^  \]/ { inside = 0 }
		inside && /^      "name":/ { gsub(/^ *"name": "|",?$/, ""); print }' | sort -u
}

_dwellctl()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words=""
	COMPREPLY=()
	if [ "$prev" = --socket ]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
	fi
	if [ "$COMP_CWORD" -eq 1 ]; then
		words="status reload undo check --help --version"
	else
		case ${COMP_WORDS[1]}:$cur in
		status:-*) words="--json --watch --prometheus --socket --help" ;;
		status:*) words=$(_dwellctl_names targets) ;;
		undo:-*) words="--all --socket --help" ;;
		undo:*)
			if [ "$COMP_CWORD" -eq 2 ]; then
				words=$(_dwellctl_names hooks)
			else
				words=$(_dwellctl_names targets)
			fi
			;;
		reload:*) words="--socket --help" ;;
		check:-*) words="--help" ;;
		check:*)
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
			return
			;;
		esac
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -F _dwellctl dwellctl
