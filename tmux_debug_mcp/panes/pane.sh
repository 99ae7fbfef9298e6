#!/bin/sh
# Runs a program in a pane, and writes the end mark with its exit code after its output.
#
#   sh pane.sh FILE LOG OPEN_FILES SLEEP TAIL DIRECTORY PROGRAM [ARGUMENT...]
#
# FILE contains the nonce of the mark. It is emptied first, so nothing in the pane can read it. If
# there is a FILE.void, the call that wanted the pane has failed, and the program must not run.
# SLEEP and TAIL are the paths of sleep(1) and tail(1).
#
# The mark is an operating system command (ECMA-48, OSC) that no terminal knows, so it is invisible.
# A string terminator before it ends any string that the program left open.
#
# tmux drops output that it has not read when the pane's process ends, and under load it may read
# late. So this process stays until LOG contains the mark, for 5 s at most. Nobody waits for it.

# The shell's own messages, such as "Segmentation fault", are not output. 3 is the terminal. 4 is
# the log, opened now since its path may vanish later.
exec 3>&2 2>/dev/null
command exec 4<"$2"
IFS= read -r mcp_mark <"$1"
: >|"$1"
[ ! -e "$1.void" ] || exit
mcp_sleep=$4
mcp_tail=$5
mcp_looks=16
# Signals to the whole process group, such as C-c or `kill 0`, are meant for the program. A signal
# that is caught here has its default action there. Source: POSIX, sh, trap.
trap : INT QUIT TERM USR1 USR2 TTIN TTOU
# After SIGHUP, the terminal is gone or the server is ending.
trap 'mcp_looks=0' HUP
# shellcheck disable=SC3045  # not POSIX, but every sh on Linux has it
ulimit -S -n "$3"
cd -- "$6" 2>&3 && (
	shift 6
	unset TMUX TMUX_PANE OLDPWD
	exec "$@" 2>&3 3>&- 4<&-
)
mcp_status=$?
# A program may have left the terminal to its own process group, with `stty tostop` set.
trap '' TTIN TTOU
printf '\033\\\033]7777;%s;%d\007' "$mcp_mark" "$mcp_status"
while [ "$mcp_looks" -gt 0 ]; do
	"$mcp_sleep" 0.3
	case $("$mcp_tail" -c 4096 <&4) in *"$mcp_mark;$mcp_status"*) break ;; esac
	mcp_looks=$((mcp_looks - 1))
done
exit "$mcp_status"
