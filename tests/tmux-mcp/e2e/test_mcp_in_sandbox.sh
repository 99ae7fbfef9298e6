#!/usr/bin/env bash
# The server inside, started as the subagent's client does, through all its tools.
# shellcheck disable=SC2016
# shellcheck source=tests/tmux-mcp/e2e/lib.sh
source "$(dirname "$0")/lib.sh" || exit

# The command and the environment stand in the agent's file.
entry=$(in_sandbox "$ws" sed -n 's/^  - tmux-debug: //p' /home/sandbox/.claude/agents/tmux-debug.md)
mapfile -t command < <("$python" -c '
import json, sys
entry = json.loads(sys.argv[1])
print("env", *(f"{name}={value}" for name, value in entry["env"].items()), entry["command"], *entry["args"], sep="\n")
' "$entry")
start_server_in "$SANDBOX_BASE" "$ws" "${command[@]}"

call create_pane '{"name": "server", "command": "echo ready; while read -r line; do echo got $line; done", "wait_for": "ready"}'
contains "$TEXT" "Created pane 'server' (id: debug-1)"
contains "$STATUS" matched
call send_keys '{"pane_id": "server", "keys": "one Enter"}'
contains "$TEXT" "Sent keys to pane 'server'"
call wait '{"pane_id": "server", "pattern": "got one"}'
contains "$STATUS" matched
call capture_pane '{"pane_id": "server"}'
equal "$TEXT" $'ready\none\ngot one'
run 'id -u; echo made >made; pwd; false'
equal "$TEXT" $'1000\n/workspace\n'
contains "$STATUS" "exited with code 1"
run 'tmux-debug list'
contains "$TEXT" '"name":"server","status":"running"'
call list_panes
contains "$TEXT" '"name":"server","status":"running"'
call kill_pane '{"pane_id": "server"}'
contains "$TEXT" "Killed pane 'server'"
stop_server

# What was made is the user's, outside as well.
equal "$(stat -c %u "$ws/made" "$ws/.debug-audit.log" | sort -u)" "$owner"
equal "$(sed -n 's/.*"tool":"\([a-z_]*\)".*/\1/p' "$ws/.debug-audit.log" | paste -sd ' ')" \
	"create_pane send_keys wait capture_pane run list_panes run list_panes kill_pane"

# The command line, which the main session has as well: the first verb starts a server, which ends with the container.
equal "$(in_sandbox "$ws" sh -c '
	tmux-debug create --name web "echo up; exec cat" 2>/dev/null | tail -n 1
	tmux-debug send web hello Enter 2>/dev/null | tail -n 1
	tmux-debug run "id -u; pwd; exit 3" 2>/dev/null || echo "status $?"
	tmux-debug stop >/dev/null
')" $'up\nhello\n1000\n/workspace\nstatus 3'

# What the subagent leaves running is reached from the main session.
in_sandbox --podman-arg --name=e2e-subagent "$ws" sleep infinity &
until podman exec e2e-subagent true 2>/dev/null; do sleep 0.05; done
start_server_in podman exec --interactive e2e-subagent "${command[@]}"
call create_pane '{"name": "left", "command": "echo left; exec cat"}'
stop_server
equal "$(podman exec e2e-subagent tmux-debug capture --text left)" left
podman kill e2e-subagent >/dev/null
until_no_container "the subagent's"

# A client that is killed takes its container along.
start_server_in "$SANDBOX_BASE" "$ws" tmux-debug-mcp
call create_pane '{"command": "sleep 1000"}'
kill -KILL "$SERVER_PID"
stop_server
until_no_container "the death of a client"

# A server in a container that runs already, as in one of Kubernetes: its end leaves the container clean.
in_sandbox --podman-arg --name=e2e-pod "$ws" sleep infinity &
until podman exec e2e-pod true 2>/dev/null; do sleep 0.05; done
start_server_in podman exec --interactive e2e-pod tmux-debug-mcp
run 'cat ~/.claude/agents/tmux-debug.md | head -n 2; setsid sleep 1000 & echo'
contains "$TEXT" "name: tmux-debug"
call create_pane '{"command": "sleep 1000"}'
kill -KILL "$SERVER_PID"
stop_server
for ((tries = 0; tries < 200; tries++)); do
	left=$(podman exec e2e-pod ps -eo args=)
	[[ $left == *tmux-debug-mcp* || $left == *"sleep 1000"* ]] || break
	sleep 0.05
done
podman kill e2e-pod >/dev/null
lacks "$left" "sleep 1000"
lacks "$left" "tmux-debug-mcp"
until_no_container "the end of the pod"

pass
