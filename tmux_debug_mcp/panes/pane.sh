#!/bin/sh
# Runs a program in a pane, and writes the end mark with its exit code after its output.
#
#   sh pane.sh FILE LOG OPEN_FILES SLEEP TAIL SUPERVISOR DIRECTORY PROGRAM [ARGUMENT...]
#
# FILE contains the nonce of the mark. It is emptied first, so nothing in the pane can read it. If
# there is a FILE.void, the call that wanted the pane has failed, and the program must not run.
# SLEEP and TAIL are the paths of sleep(1) and tail(1). SUPERVISOR is the process that adopts what the
# program leaves running.
#
# The mark is an operating system command (ECMA-48, OSC) that no terminal knows, so it is invisible.
# A string terminator before it ends any string that the program left open.
#
# tmux drops output that it has not read when the pane's process ends, and under load it may read
# late. So this process stays until LOG contains the mark, for 5 s at most. Then it stays as long as
# the program has left something running that uses the terminal: with this process, the terminal
# would go, and SIGHUP come. Nobody waits for it.

# The shell's own messages, such as "Segmentation fault", are not output. 3 is the terminal. 4 is
# the log, opened now since its path may vanish later.
exec 3>&2 2>/dev/null
command exec 4<"$2"
IFS= read -r mcp_mark <"$1"
: >|"$1"
[ ! -e "$1.void" ] || exit
mcp_sleep=$4
mcp_tail=$5
mcp_supervisor=$6
mcp_looks=16
mcp_hung_up=
# Signals to the whole process group, such as C-c or `kill 0`, are meant for the program. A signal
# that is caught here has its default action there. Source: POSIX, sh, trap.
trap : INT QUIT TERM USR1 USR2 TTIN TTOU
# After SIGHUP, the terminal is gone or the server is ending.
trap 'mcp_hung_up=1' HUP
# shellcheck disable=SC3045  # not POSIX, but every sh on Linux has it
ulimit -S -n "$3"
cd -- "$7" 2>&3 && (
	shift 7
	unset TMUX TMUX_PANE OLDPWD
	exec "$@" 2>&3 3>&- 4<&-
)
mcp_status=$?
# A program may have left the terminal to its own process group, with `stty tostop` set. That SIGTTIN
# is ignored also tells that the program has ended.
trap '' TTIN TTOU
printf '\033\\\033]7777;%s;%d\007' "$mcp_mark" "$mcp_status"
while [ "$mcp_looks" -gt 0 ] && [ ! "$mcp_hung_up" ]; do
	"$mcp_sleep" 0.3
	case $("$mcp_tail" -c 4096 <&4) in *"$mcp_mark;$mcp_status"*) break ;; esac
	mcp_looks=$((mcp_looks - 1))
done

# Tell whether a process that the program has left is in our session, or has our terminal open.
# shellcheck disable=SC3013  # -ef is not POSIX, but every sh on Linux has it
mcp_is_used() {
	read -r mcp_adopted <"/proc/$mcp_supervisor/task/$mcp_supervisor/children"
	for mcp_pid in $mcp_adopted; do
		read -r mcp_stat <"/proc/$mcp_pid/stat" || continue
		# shellcheck disable=SC2086  # the state, the parent, the group and the session are words
		set -- ${mcp_stat##*) }
		case $1 in [ZX]) continue ;; esac
		[ "$4" != $$ ] || return 0
		for mcp_file in 0 1 2; do
			[ ! "/proc/$mcp_pid/fd/$mcp_file" -ef /proc/$$/fd/3 ] || return 0
		done
	done
	return 1
}
while [ ! "$mcp_hung_up" ] && mcp_is_used; do "$mcp_sleep" 1; done
exit "$mcp_status"
