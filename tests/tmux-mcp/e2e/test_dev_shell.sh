#!/usr/bin/env bash
# What a flake's user has in a development shell: its packages and variables, Nix itself, ports.
# shellcheck disable=SC2016
# shellcheck source=tests/tmux-mcp/e2e/lib.sh
source "$(dirname "$0")/lib.sh" || exit

# Ports are for one sandbox at a time, and these tests run as root and without at once.
exec {lock}<"$SANDBOX_SHELL"
flock "$lock"

in_sandbox() { "$SANDBOX_SHELL" "$@"; }
# What this machine needs, its container beside the sandbox needs as well.
export TMUX_DEBUG_SANDBOX_PROXY_PODMAN_ARGS=$TMUX_DEBUG_SANDBOX_PODMAN_ARGS XDG_STATE_HOME=$work/state

# The first of two shells with a variable has it, and what is given to the sandbox comes before both.
equal "$(OF_THE_START=here OTHER=x in_sandbox "$ws" sh -c 'echo "$DATABASE|$SECOND|$EDITOR|$OF_THE_START|$OTHER|$HOME|$TMPDIR"')" \
	"postgres://localhost/of the shell|two
lines|vi|here||/home/sandbox|"
# Its programs come before the sandbox's, and its hook doesn't run.
equal "$(in_sandbox "$ws" sh -c 'dash -c "echo dash"; zsh -fc "echo zsh"; command -v tmux-debug' | tail -n 3)" $'dash\nzsh\n/bin/tmux-debug'
# So they are in its terminals.
contains "$(in_sandbox "$ws" sh -c 'tmux-debug run "echo \$DATABASE; zsh -fc \"echo in zsh\""; tmux-debug stop' 2>/dev/null)" $'of the shell\nin zsh'

# Messages have the command's own name.
refused "project-shell: '$work/none' is not a directory" "$work/none"
contains "$(in_sandbox --help)" "usage: project-shell"

# Ports lead in and out, also where there is no network.
"$python" - >"$work/outside.log" 2>&1 <<'END' &
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"from the host\n")
http.server.HTTPServer(("127.0.0.1", 28473), Handler).serve_forever()
END
outside=$!
trap 'kill "$outside"; wait "$outside" 2>/dev/null || true; at_end' EXIT
at_end() {
	until_nothing_is_left
	remove_work
}
cat >"$ws/serve.sh" <<'END'
until curl --silent --fail http://127.0.0.1:28473/ >/workspace/got; do sleep 0.1; done
serve() { while true; do printf 'HTTP/1.0 200 OK\r\n\r\n%s\n' "$2" | nc -l -N 127.0.0.1 "$1" >/dev/null; done; }
serve 28471 first &
serve 8000 second &
echo ready
exec sleep 1000
END
chmod 644 "$ws/serve.sh"
: >"$work/started"
"$SANDBOX_SHELL" "$ws" bash serve.sh </dev/null >"$work/started" 2>"$work/errors" {lock}<&- &
inside=$!
until [[ $(<"$work/started") == *ready* ]]; do
	kill -s 0 "$inside" || fail "the sandbox has ended: $(<"$work/errors")"
	sleep 0.1
done
equal "$(<"$ws/got")" "from the host"
for answer in 28471:first 28472:second; do
	for ((tries = 0; tries < 100; tries++)); do
		got=$(curl --silent --noproxy '*' "http://127.0.0.1:${answer%:*}/") || true
		[[ -z $got ]] || break
		sleep 0.1
	done
	equal "$got" "${answer#*:}"
done
# Only from this machine.
equal "$(ss --listening --tcp --numeric --no-header 'sport = 28471' | tr -s ' ' | cut -d ' ' -f 4)" 127.0.0.1:28471
# Nothing but these.
refused "Port 28471 of this machine is in use." "$ws" true
kill "$inside"
wait "$inside" || true
until_no_container "the sandbox with ports"

# What listens for a port outside follows no link out of the sockets' directory.
"$python" - "$work/host.sock" <<'END' &
import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
while True:
    connection, _ = listener.accept()
    connection.sendall(b"the socket of the host\n")
    connection.close()
END
host_socket=$!
until [[ -S $work/host.sock ]]; do sleep 0.05; done
chmod 777 "$work/host.sock"
: >"$work/started"
"$SANDBOX_SHELL" "$ws" bash -c 'rm /run/inside/28471; ln -s "$0" /run/inside/28471; echo ready; exec sleep 1000' "$work/host.sock" </dev/null >"$work/started" 2>"$work/errors" {lock}<&- &
inside=$!
until [[ $(<"$work/started") == *ready* ]]; do
	kill -s 0 "$inside" || fail "the sandbox has ended: $(<"$work/errors")"
	sleep 0.1
done
equal "$(timeout 5 "$python" -c 'import socket; s = socket.create_connection(("127.0.0.1", 28471)); print(s.recv(100))' 2>&1 | tail -n 1)" "b''"
kill "$inside" "$host_socket"
wait "$inside" "$host_socket" 2>/dev/null || true
until_no_container "the sandbox with a link"

# Nix by the host's daemon: who is not root here can't start one.
if ((!EUID)); then
	mkdir -p "$work/daemon"
	chmod 755 "$work/daemon"
	export NIX_DAEMON_SOCKET_PATH=$work/daemon/socket
	status=0
	"$SANDBOX_NIX" "$ws" true 2>"$work/errors" || status=$?
	contains "$status $(<"$work/errors")" "2 tmux-debug-sandbox: Nix can't work inside: its daemon has no socket at '$work/daemon/socket'."
	nix --extra-experimental-features nix-command daemon >"$work/daemon.log" 2>&1 &
	daemon=$!
	until [[ -S $NIX_DAEMON_SOCKET_PATH ]]; do
		kill -s 0 "$daemon" || fail "the daemon does not start: $(<"$work/daemon.log")"
		sleep 0.05
	done
	built=$("$SANDBOX_NIX" "$ws" sh -c 'nix build --impure --no-link --print-build-logs --expr "derivation { name = \"from-inside\"; system = \"x86_64-linux\"; builder = \"/bin/sh\"; args = [ \"-c\" \"echo built >\\\$out\" ]; }" --out-link /workspace/result >&2; cat /workspace/result' 2>"$work/errors") || fail "$(<"$work/errors")"
	equal "$built" built
	kill "$daemon"
	wait "$daemon" || true
fi

pass
