#!/usr/bin/env bash
# When the server ends, by end of input or SIGTERM, session and panes are gone.
# shellcheck source=tests/tmux-mcp/lib.sh
source "$(dirname "$0")/lib.sh" || exit

gone() {
	kill -0 "$1" 2>/dev/null && fail "server $1 still runs"
	[[ -z $(directories "$1") ]] || fail "server $1 left its directory"
	kill -0 "$2" 2>/dev/null && fail "pane process $2 still runs"
	return 0
}

for how in end-of-input SIGTERM; do
	start_server
	for number in 1 2 3; do
		call create_pane "{\"command\": \"echo \$\$; exec sleep 300\", \"name\": \"cleanup-$number\"}"
	done
	until_text cleanup-3 ""
	contains "$(server_tmux list-windows -F '#{window_name}')" cleanup-3
	pane=$(server_tmux list-panes -a -F '#{pane_pid}' | tail -n 1)
	[[ $how == end-of-input ]] || kill -s "$how" "$SERVER_PID"
	stop_server
	gone "$SERVER_PID" "$pane"
done

pass
