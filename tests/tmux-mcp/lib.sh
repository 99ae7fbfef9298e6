# shellcheck shell=bash
# For the scripts beside it: a server, calls and checks. Source it.
#
#   start_server [NAME=VALUE...]   a server with these variables; its process id is in SERVER_PID
#   call TOOL [JSON]               call tmux_TOOL; the answer is in WORD (ok, error), TEXT and STATUS
#   id                             the pane id in TEXT of a create_pane
#   until_text PANE TEXT           capture until the text comes up
#   until_list TEXT                list until the text comes up

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# The command to test; by default the one that ./dev setup makes, or else the one on the PATH.
server=${TMUX_MCP_SERVER:-$root/.venv/bin/tmux-debug-mcp}
[[ -x $server ]] || server=tmux-debug-mcp
python=$(command -v python3)
[[ -x $root/.venv/bin/python ]] && python=$root/.venv/bin/python

work=$(mktemp -d)
trap 'stop_server; rm -rf "$work"' EXIT

start_server() {
	coproc CLIENT { exec env "$@" "$python" "$here/client.py" "$server"; }
	IFS= read -r -d '' SERVER_PID <&"${CLIENT[0]}"
}

# The end of the client's input is the end of the server's.
stop_server() {
	if [[ -n ${CLIENT_PID-} ]]; then
		local pid=$CLIENT_PID input=${CLIENT[1]}
		exec {input}>&-
		wait "$pid" || true
	fi
}

call() {
	printf '%s\t%s\n' "$1" "${2-"{}"}" >&"${CLIENT[1]}"
	local field
	for field in WORD TEXT STATUS; do
		IFS= read -r -d '' "$field" <&"${CLIENT[0]}"
	done
}

fail() {
	printf 'FAIL: %s\n' "$*" >&2
	exit 1
}

equal() { [[ $1 == "$2" ]] || fail "expected '$2', got '$1'"; }
contains() { [[ $1 == *"$2"* ]] || fail "expected '$2' in '$1'"; }
lacks() { [[ $1 != *"$2"* ]] || fail "did not expect '$2' in '$1'"; }

id() { sed -n '1s/.*(id: \([^)]*\)).*/\1/p' <<<"$TEXT"; }

until_text() {
	local tries
	for ((tries = 0; tries < 400; tries++)); do
		call capture_pane "{\"pane_id\": \"$1\"}"
		[[ $TEXT != *"$2"* ]] || return 0
		sleep 0.02
	done
	fail "'$2' does not come up in '$TEXT'"
}

until_list() {
	local tries
	for ((tries = 0; tries < 400; tries++)); do
		call list_panes
		[[ $TEXT != *"$1"* ]] || return 0
		sleep 0.02
	done
	fail "'$1' does not come up in '$TEXT'"
}

# The directories of a server, which are where temporary files go unless that path is too long for a socket.
directories() {
	local place
	for place in "${XDG_RUNTIME_DIR:-/tmp}" "${TMPDIR:-/tmp}" /tmp; do
		if compgen -G "$place/tmux-debug-mcp-$1-*"; then
			return
		fi
	done
}

# tmux on the server's own socket.
server_tmux() { tmux -S "$(directories "$SERVER_PID")/tmux" "$@"; }

pass() { printf 'PASS: %s\n' "$(basename "$0")"; }
