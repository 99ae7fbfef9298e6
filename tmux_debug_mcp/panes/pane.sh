#!/bin/sh
# Runs a command in a pane, and tells the pane's log when and how it ended.
#
#   sh pane.sh FILE OPEN_FILES SLEEP DIRECTORY PROGRAM [ARGUMENT...]
#
# FILE has the mark and is emptied, so that nothing in the pane can read it. The mark follows the command's output
# through the terminal, invisibly: an operating system command that no terminal knows, after the end of any string that
# the command left open. tmux drops output that it has not read when the pane's process ends, so this process outlives
# the mark. Nobody waits for that.

# This shell's own words, such as "Segmentation fault", are not the pane's. 3 is the pane.
exec 3>&2 2>/dev/null
IFS= read -r mcp_mark <"$1"
: >|"$1"
mcp_sleep=$3
# Signals to the whole process group, such as ^C or `kill 0`, are for the command: caught here, default there.
trap : INT QUIT TERM USR1 USR2
# The terminal is gone or the server ends: there is nothing to wait for.
trap 'mcp_sleep=:' HUP
# shellcheck disable=SC3045  # not POSIX, but every sh on Linux has it
ulimit -S -n "$2"
cd -- "$4" 2>&3 && (
	shift 4
	unset TMUX TMUX_PANE OLDPWD
	exec "$@" 2>&3 3>&-
)
mcp_status=$?
printf '\033\\\033]7777;%s;%d\007' "$mcp_mark" "$mcp_status"
"$mcp_sleep" 0.3
exit "$mcp_status"
