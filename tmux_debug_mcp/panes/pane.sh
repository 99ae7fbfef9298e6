#!/bin/sh
# Runs a program in a pane, and writes the end mark with its exit code behind its output.
#
#   sh pane.sh FILE OPEN_FILES SLEEP DIRECTORY PROGRAM [ARGUMENT...]
#
# FILE has the nonce of the mark. It is emptied first, so that nothing in the pane can read it.
#
# The mark is an operating system command (ECMA-48, OSC) that no terminal knows, so it is invisible.
# A string terminator before it ends any string that the program left open.
#
# tmux drops output that it has not read when the pane's process ends. So this process sleeps after
# the mark. Nobody waits for that sleep.

# The shell's own messages, such as "Segmentation fault", are not output. 3 is the terminal.
exec 3>&2 2>/dev/null
IFS= read -r mcp_mark <"$1"
: >|"$1"
mcp_sleep=$3
# Signals to the whole process group, such as C-c or `kill 0`, are meant for the program. A signal
# that is caught here has its default action there. Source: POSIX, sh, trap.
trap : INT QUIT TERM USR1 USR2 TTIN TTOU
# After SIGHUP, the terminal is gone or the server ends, so the sleep is left out.
trap 'mcp_sleep=:' HUP
# shellcheck disable=SC3045  # not POSIX, but every sh on Linux has it
ulimit -S -n "$2"
cd -- "$4" 2>&3 && (
	shift 4
	unset TMUX TMUX_PANE OLDPWD
	exec "$@" 2>&3 3>&-
)
mcp_status=$?
# A program may have left the terminal to a group of its own, and `stty tostop`.
trap '' TTIN TTOU
printf '\033\\\033]7777;%s;%d\007' "$mcp_mark" "$mcp_status"
"$mcp_sleep" 0.3
exit "$mcp_status"
