#!/usr/bin/env bash
# Kill a pane: its window is gone, its process too, and the list lacks it; others stay.
# shellcheck source=tests/tmux-mcp/lib.sh
source "$(dirname "$0")/lib.sh" || exit

start_server

for name in one two three; do
	call create_pane "{\"command\": \"exec sleep 300\", \"name\": \"$name\"}"
done
call kill_pane '{"pane_id": "two"}'
contains "$TEXT" "Killed pane 'two' (killed by SIGHUP after "

call list_panes
contains "$TEXT" '"name":"one"'
lacks "$TEXT" '"name":"two"'
contains "$TEXT" '"name":"three"'
lacks "$(server_tmux list-windows -F '#{window_name}')" two
equal "$(server_tmux list-panes -a -F x | wc -l)" 3

call kill_pane '{"pane_id": "debug-1"}'
call kill_pane '{"pane_id": "debug-3"}'
call list_panes
equal "$TEXT" "No active panes. Use tmux_create_pane to start one."
call kill_pane '{"pane_id": "debug-1"}'
equal "$WORD" error

pass
