#!/usr/bin/env bash
# Runs the integration scripts, or those that are named: run-integration.sh [create_pane ...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

(($#)) || set -- create_pane send_keys capture_pane kill_pane list_panes exited_pane error_handling audit_log cleanup_on_exit
failed=()
for name in "$@"; do
	"./test_$name.sh" || failed+=("$name")
done
if ((${#failed[@]})); then
	echo "failed: ${failed[*]}" >&2
	exit 1
fi
echo "all $# passed"
