#!/usr/bin/env bash
# Capture with several line counts: exact lines, the default and the most.
# shellcheck source=tests/tmux-mcp/lib.sh
source "$(dirname "$0")/lib.sh" || exit

start_server

call create_pane '{"command": "seq 1 1200; sleep 60"}'
until_text debug-1 1200
call capture_pane '{"pane_id": "debug-1"}'
equal "$TEXT" "$(seq 1101 1200)"
for lines in 1 10 50 1000; do
	call capture_pane "{\"pane_id\": \"debug-1\", \"lines\": $lines}"
	equal "$TEXT" "$(seq $((1201 - lines)) 1200)"
done
call capture_pane '{"pane_id": "debug-1", "lines": 5000}'
equal "$TEXT" "$(seq 201 1200)"

call create_pane '{"command": "printf \"line-alpha\\nline-beta\\nline-gamma\\n\"; sleep 60"}'
until_text debug-2 line-gamma
equal "$TEXT" $'line-alpha\nline-beta\nline-gamma'

pass
