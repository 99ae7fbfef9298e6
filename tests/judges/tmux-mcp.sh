#!/usr/bin/env bash
# The main session's context is free of our tools: a real Claude Code in its sandbox, whose model is a script.
#
# SANDBOX_SUBAGENT and SANDBOX_MAIN: the commands of sandboxes with the client, one for each scope; empty where the
# client could not be installed. TMUX_MCP_SKIP_CLIENT=1 skips the test then, with exit status 77.
set -euo pipefail
judges=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ -n ${SANDBOX_BASE-} ]] || exec "$judges/../tmux-mcp/run-e2e.sh" context_isolation
# shellcheck source=tests/tmux-mcp/e2e/lib.sh
source "$judges/../tmux-mcp/e2e/lib.sh"

test_context_isolation() {
	local scope sandbox
	for scope in subagent main; do
		sandbox=SANDBOX_${scope^^}
		if [[ -z ${!sandbox} && -n ${TMUX_MCP_SKIP_CLIENT-} ]]; then
			echo "SKIP: test_context_isolation: Claude Code is not installed" >&2
			exit 77
		fi
		[[ -n ${!sandbox} ]] || fail "test_context_isolation: Claude Code could not be installed. Where nixpkgs refuses what is not free: NIXPKGS_ALLOW_UNFREE=1 nix run --impure .#e2e. TMUX_MCP_SKIP_CLIENT=1 skips the test."
		"${!sandbox}" --podman-arg "--volume=$judges:/judges:ro" "$ws" python3 /judges/context_isolation.py "$scope" claude
	done
}

test_context_isolation
pass
