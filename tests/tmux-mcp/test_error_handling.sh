#!/usr/bin/env bash
# Errors are results with isError and a sentence that shows the way.
# shellcheck source=tests/tmux-mcp/lib.sh
source "$(dirname "$0")/lib.sh" || exit

start_server

for tool in send_keys capture_pane kill_pane; do
	keys=''
	[[ $tool != send_keys ]] || keys=', "keys": "x"'
	call "$tool" "{\"pane_id\": \"nonexistent\"$keys}"
	equal "$WORD" error
	equal "$TEXT" "Pane 'nonexistent' not found. Use tmux_list_panes to see active panes."
done

call create_pane
equal "$WORD $TEXT" "error Parameter 'command' is missing. tmux_create_pane needs command."
call send_keys '{"keys": "x"}'
contains "$WORD $TEXT" "error Parameter 'pane_id' is missing."
call send_keys '{"pane_id": "x"}'
contains "$WORD $TEXT" "error Parameter 'keys' is missing."
call unknown_tool
contains "$WORD $TEXT" "error Unknown tool 'tmux_unknown_tool'."

pass
