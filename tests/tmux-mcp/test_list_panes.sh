#!/usr/bin/env bash
# List none, then several, with names, ids, status and commands; then none again.
# shellcheck source=tests/tmux-mcp/lib.sh
source "$(dirname "$0")/lib.sh" || exit

start_server

call list_panes
contains "$TEXT" "No active panes"

call create_pane '{"command": "echo first; sleep 300", "name": "pane-one"}'
call create_pane '{"command": "echo second; sleep 300", "name": "pane-two"}'
call create_pane '{"command": "echo third; sleep 300"}'
call list_panes
rows=$("$python" -c '
import json, sys
for row in json.loads(sys.argv[1]):
    print(row["id"], row["name"], row["status"], row["command"])
' "$TEXT")
equal "$rows" "debug-1 pane-one running echo first; sleep 300
debug-2 pane-two running echo second; sleep 300
debug-3 debug-3 running echo third; sleep 300"

for number in 1 2 3; do
	call kill_pane "{\"pane_id\": \"debug-$number\"}"
done
call list_panes
contains "$TEXT" "No active panes"

pass
