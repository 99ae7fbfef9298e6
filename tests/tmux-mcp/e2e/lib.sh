# shellcheck shell=bash disable=SC2034
# For the scripts beside it: a workspace, sandboxes, and the server inside. Source it.
#
#   in_sandbox [ARGUMENT...]    the base sandbox's command
#   refused TEXT [ARGUMENT...]  fails unless it refuses these, with a message that has this text
#   start_server_in COMMAND...  a server that this command starts; then `call` and the rest of ../lib.sh
#   until_no_container WHAT     fails where one stays after this
#   until_nothing_is_left       fails where directories of sandboxes stay, the last that goes of one
#   $runtime                    where these directories are
#   run COMMAND                 runs a command with tmux_run; its output is in TEXT, its end in STATUS
#   gives WHAT COMMAND TEXT     fails unless this is the whole output of the command
#   denies WHAT COMMAND REASON...
#                               fails unless the command fails, and says one of these
#   $tried                      how many of both there were

# shellcheck source=tests/tmux-mcp/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

# Whoever became root with sudo has a shell that tells where it is.
unset SUDO_UID

ws=$work/ws
mkdir "$ws"
# As root, the sandbox runs as the one who has the directory.
((EUID)) || chown 1000:1000 "$ws"
owner=$(stat -c %u "$ws")

# Waits until no container is left, which is soon after the launcher's end.
until_no_container() {
	local tries left
	for ((tries = 0; tries < 200; tries++)); do
		left=$(podman ps --all --format '{{.Names}} ({{.Status}})')
		[[ -n $left ]] || return 0
		sleep 0.05
	done
	fail "a container is left after $1: $left"
}

runtime=${XDG_RUNTIME_DIR:-${TMPDIR:-/tmp}}
until_nothing_is_left() {
	local tries left
	for ((tries = 0; tries < 200; tries++)); do
		left=$(find "$runtime" -maxdepth 1 -name 'tmux-debug-sandbox.*')
		[[ -n $left ]] || return 0
		sleep 0.05
	done
	fail "directories are left: $left"
}
# What clears up after a sandbox runs podman, which may still write to the HOME of the test.
remove_work() {
	local tries
	for ((tries = 0; tries < 100; tries++)); do
		! rm -rf "$work" 2>/dev/null || return 0
		sleep 0.1
	done
	rm -rf "$work"
}
trap 'stop_server; until_nothing_is_left; remove_work' EXIT

in_sandbox() { "$SANDBOX_BASE" "$@"; }

refused() {
	local expected=$1 code=0
	shift
	in_sandbox "$@" >"$work/output" 2>"$work/errors" </dev/null || code=$?
	contains "$(<"$work/errors")" "$expected"
	equal "$code $(<"$work/output")" "2 "
}

start_server_in() {
	printf '#!/usr/bin/env bash\nexec %s\n' "${*@Q}" >"$work/server"
	chmod +x "$work/server"
	server=$work/server
	start_server
}

json() {
	local text=${1//\\/\\\\}
	text=${text//\"/\\\"}
	text=${text//$'\t'/\\t}
	printf '"%s"' "${text//$'\n'/\\n}"
}

run() { call run "{\"command\": $(json "$1")}"; }

tried=0
gives() {
	run "$2"
	[[ $TEXT == "${3:+$3$'\n'}" ]] || fail "$1: expected '$3' of '$2', got '$TEXT'"
	tried=$((tried + 1))
}

denies() {
	local what=$1 command=$2 reason
	shift 2
	run "$command"
	[[ $STATUS != *"code 0"* ]] || fail "$what: '$command' succeeded: '$TEXT'"
	for reason; do
		if [[ $TEXT == *"$reason"* ]]; then
			tried=$((tried + 1))
			return
		fi
	done
	fail "$what: expected '$*' of '$command', got '$TEXT'"
}
