#!/usr/bin/env bash
# Create panes: the tmux windows exist, the ids are returned, the list has them.
# shellcheck source=tests/tmux-mcp/lib.sh
source "$(dirname "$0")/lib.sh" || exit

start_server

call create_pane '{"command": "sleep 60"}'
equal "$WORD" ok
equal "$(id)" debug-1
call create_pane '{"command": "echo named && sleep 60", "name": "my-test-pane"}'
equal "$TEXT" "Created pane 'my-test-pane' (id: debug-2)"

contains "$(server_tmux list-sessions -F '#{session_name}')" "debug-$SERVER_PID"
contains "$(server_tmux list-windows -F '#{window_index}:#{window_name}')" "1:debug-1"
contains "$(server_tmux list-windows -F '#{window_index}:#{window_name}')" "2:my-test-pane"
equal "$(server_tmux show-options -gwv remain-on-exit)" on

call list_panes
contains "$TEXT" '"id":"debug-1"'
contains "$TEXT" '"name":"my-test-pane"'
contains "$TEXT" '"command":"sleep 60"'

pass
