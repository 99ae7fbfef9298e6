#!/usr/bin/env bash
# With TMUX_DEBUG_AUDIT every call is a line of JSON with what spec 001 lists.
# shellcheck source=tests/tmux-mcp/lib.sh
source "$(dirname "$0")/lib.sh" || exit

start_server TMUX_DEBUG_AUDIT="$work/logs/audit.log" TMUX_DEBUG_AUDIT_FULL="$work/full"

call create_pane '{"command": "echo audited; read -rs word", "name": "server"}'
until_text server audited
call send_keys '{"pane_id": "debug-1", "keys": "echo logged"}'
call send_keys '{"pane_id": "debug-1", "keys": "hunter2", "secret": true}'
call capture_pane '{"pane_id": "debug-1", "lines": 50}'
call list_panes
call kill_pane '{"pane_id": "debug-1"}'
call kill_pane '{"pane_id": "debug-1"}'
stop_server

"$python" - "$work/logs/audit.log" <<'PYTHON'
import json, re, sys

records = [json.loads(line) for line in open(sys.argv[1])]
assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", record["ts"]) for record in records), records
kept = ("tool", "pane_id", "command", "name", "keys", "lines", "failed")
rest = [{key: record[key] for key in kept if key in record} for record in records]
rest = [record for record in rest if record["tool"] != "capture_pane"]
assert rest == [
    {"tool": "create_pane", "pane_id": "debug-1", "command": "echo audited; read -rs word", "name": "server", "failed": False},
    {"tool": "send_keys", "pane_id": "debug-1", "keys": "echo logged", "failed": False},
    {"tool": "send_keys", "pane_id": "debug-1", "failed": False},
    {"tool": "list_panes", "failed": False},
    {"tool": "kill_pane", "pane_id": "debug-1", "failed": False},
    {"tool": "kill_pane", "pane_id": "debug-1", "failed": True},
], rest
assert "not found" in records[-1]["error"]
captures = [record for record in records if record["tool"] == "capture_pane"]
assert captures[-1]["lines"] == 50 and captures[-1]["output_bytes"] >= 7, captures
PYTHON
equal "$(head -n 1 "$work/full/debug-1-capture-001.txt" | cut -c 1-7)" audited
lacks "$(cat "$work/logs/audit.log")" hunter2
equal "$(stat -c %a "$work/logs/audit.log")" 600

pass
