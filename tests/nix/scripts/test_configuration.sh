#!/usr/bin/env bash
# The options of mkServerConfig do what they say: test_configuration.sh NAME=VALUE...
# shellcheck source=tests/tmux-mcp/lib.sh
source "$(dirname "$0")/../tmux-mcp/lib.sh" || exit

export DROPPED_BY_US=1 KEPT=1
start_server "$@"
call run '{"command": "env"}'
contains "$TEXT" KEPT=1
lacks "$TEXT" DROPPED_BY_US
call nothing
contains "$TEXT" create_tab
stop_server

contains "$(<~/logs/audit.log)" '"tool":"run"'
contains "$(<~/full/debug-1-capture-001.txt)" KEPT=1
contains "$(cat ~/kept/*/debug-1.log)" KEPT=1

pass
