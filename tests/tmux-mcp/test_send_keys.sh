#!/usr/bin/env bash
# Type a command into a shell and see what it prints; interrupt one.
# shellcheck source=tests/tmux-mcp/lib.sh
source "$(dirname "$0")/lib.sh" || exit

start_server

call create_pane '{"command": "bash --norc", "name": "shell"}'
call send_keys '{"pane_id": "shell", "keys": "echo hello"}'
equal "$TEXT" "Sent keys to pane 'shell' (Enter not pressed)"
call send_keys '{"pane_id": "shell", "keys": "Enter"}'
equal "$TEXT" "Sent keys to pane 'shell'"
until_text shell $'\nhello\n'

call send_keys '{"pane_id": "shell", "keys": "sleep 100 Enter"}'
until_list '"foreground":"sleep"'
call send_keys '{"pane_id": "shell", "keys": "^C"}'
until_list '"foreground":"bash"'
until_text shell '^C'

pass
