#!/usr/bin/env bash
# A pane stays after its program exits, with status, exit code and last output.
# shellcheck source=tests/tmux-mcp/lib.sh
source "$(dirname "$0")/lib.sh" || exit

start_server

call create_pane '{"command": "echo done && exit"}'
until_list '"status":"exited"'
contains "$TEXT" '"exit_code":0'
call capture_pane '{"pane_id": "debug-1"}'
equal "$TEXT" "done"
contains "$STATUS" "[debug-1 exited with code 0 after "

call create_pane '{"command": "bash --norc", "name": "shell"}'
contains "$STATUS" "[debug-2 shell running "
call send_keys '{"pane_id": "shell", "keys": "echo goodbye; exit 7 Enter"}'
until_list '"exit_code":7'
call capture_pane '{"pane_id": "shell"}'
contains "$TEXT" $'\ngoodbye'
call send_keys '{"pane_id": "shell", "keys": "echo hello Enter"}'
equal "$WORD" error
contains "$TEXT" "exited with code 7"

pass
