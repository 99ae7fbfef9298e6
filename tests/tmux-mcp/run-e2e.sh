#!/usr/bin/env bash
# shellcheck disable=SC2016,SC2317
# Runs the end-to-end scripts in real containers, or those that are named: run-e2e.sh [filesystem_isolation ...]
#
# As root, each runs twice, at the same time: as root and, in an account that is made for it, without root. What `nix run .#e2e` sets are
# SANDBOX_BASE and the like, the sandboxes' commands; CLIENT_SUBAGENT and CLIENT_MAIN are the derivations of two that
# have a real client, which are built here, since there may be no client to be had.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ -n ${SANDBOX_BASE-} ]] || exec nix run "$here/../..#e2e" -- "$@"
(($#)) || set -- sandbox_debug_profile mcp_in_sandbox profile_composition filesystem_isolation directories closed_network protected_files git_on_host worktrees closure changes session dev_shell context_isolation

say() { printf 'e2e: %s\n' "$*" >&2; }

command -v podman >/dev/null || {
	say "podman is missing. Install it, for instance: sudo apt-get install podman uidmap"
	exit 1
}
for scope in SUBAGENT MAIN; do
	derivation=CLIENT_$scope
	built=""
	if [[ " $* " == *" context_isolation "* && -n ${!derivation} ]]; then
		built=$(nix-store --realise "${!derivation}")/bin/tmux-debug-sandbox || built=""
	fi
	export "SANDBOX_$scope=$built"
done

work=$(mktemp -d)
chmod 711 "$work"

# Each account has its own storage for images, so that nobody's is changed.
storage() {
	mkdir -m 700 "$1"
	printf '[storage]\ndriver = "overlay"\ngraphroot = "%s/images"\nrunroot = "%s/run"\n' "$1" "$1" >"$1/storage.conf"
	chown -R "$2" "$1"
}

clean_up() {
	if [[ -n ${account-} ]]; then
		pkill -KILL -u "$account" || true # there may be none
		while pgrep -u "$account" >/dev/null; do sleep 0.05; done
		userdel "$account"
	fi
	# podman keeps a mount there, and files of others.
	if ((EUID == 0)); then
		! mountpoint -q "$work/own/images/overlay" || umount "$work/own/images/overlay"
		# A launcher's last process may still be at it.
		for _ in {1..50}; do
			! rm -rf "$work" 2>/dev/null || break
			sleep 0.1
		done
	else
		CONTAINERS_STORAGE_CONF=$work/own/storage.conf podman unshare rm -rf "$work"
	fi
}
trap clean_up EXIT

storage "$work/own" "$(id -un)"
if ((EUID)); then
	"$here/e2e/run-tests.sh" "$work/own" "$@" || status=$?
	say "as root, the tests would run twice: this was without root"
else
	"$here/e2e/run-tests.sh" "$work/own" "$@" >"$work/own.log" 2>&1 &
	as_root=$!
	account=tmux-debug-e2e-$$
	useradd --home-dir "$work/other" --no-create-home "$account"
	storage "$work/other" "$account"
	(
		cd /
		exec setpriv --reuid "$account" --regid "$account" --init-groups \
			env HOME="$work/other" USER="$account" XDG_RUNTIME_DIR="$work/other" "$here/e2e/run-tests.sh" "$work/other" "$@"
	) || status=$?
	wait "$as_root" || status=$?
	cat "$work/own.log" >&2
fi
exit "${status-0}"
