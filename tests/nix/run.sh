#!/usr/bin/env bash
# Checks the flake and runs the end-to-end tests, where nixpkgs can't be had, with the stand-in beside this script.
#
#   run.sh             all of it
#   run.sh --tests     the tests beside this script
#   run.sh NAME...     the end-to-end tests of these names
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if ((EUID)) && [[ ! -S /nix/var/nix/daemon-socket/socket ]]; then
	echo "Without its daemon, Nix builds only for root. Run: sudo ./dev e2e" >&2
	exit 1
fi

# Builds see what nixpkgs' sandbox has, but for the packages that are made of the host's files (hostpkgs/README.md).
in_sandbox=(
	/bin/sh /lib64/ld-linux-x86-64.so.2 /lib/x86_64-linux-gnu/libc.so.6
	/usr/lib/locale/C.utf8 /lib/terminfo /usr/lib/x86_64-linux-gnu/zsh /usr/share/fish /etc/fish
)
NIX_CONFIG="experimental-features = nix-command flakes
build-users-group =
flake-registry =
substituters =
sandbox = relaxed
sandbox-paths = ${in_sandbox[*]}
${NIX_CONFIG-}"
export NIX_CONFIG

if [[ ${1-} == --tests ]]; then
	exec .venv/bin/python -m pytest tests/nix "${@:2}"
fi
hostpkgs=(--override-input nixpkgs path:./tests/nix/hostpkgs)
if (($#)); then
	exec nix run "${hostpkgs[@]}" .#e2e -- "$@"
fi
nix flake check --print-build-logs "${hostpkgs[@]}"
# Containers wait more than they work.
log=$(mktemp)
trap 'rm "$log"' EXIT
.venv/bin/python -m pytest tests/nix >"$log" 2>&1 &
tests=$!
nix run "${hostpkgs[@]}" .#e2e || status=$?
wait "$tests" || status=$?
cat "$log"
exit "${status-0}"
