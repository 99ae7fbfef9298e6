#!/usr/bin/env bash
# Runs the README's commands in a bare system of another release of Debian or Ubuntu: as root with a part of the tests,
# and as an ordinary user in odd surroundings with all of them (inside.sh). ./dev test-on calls it, as root.
#
#   tests/systems/run.sh SUITE [ARGUMENT...]   arguments go to pytest, both times
#
# debootstrap makes the system once; each run has a copy of it. Packages come from where this machine gets them: what
# tells package clients of proxies and certificates is passed on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

suite=${1?"which release? For instance: trixie"}
shift

systems=${XDG_CACHE_HOME:-$HOME/.cache}/tmux-debug-mcp/systems
if [[ ! -d $systems/$suite ]]; then
	echo "making a bare $suite in $systems" >&2
	mkdir -p "$systems"
	rm -rf "$systems/$suite.partial"
	debootstrap --variant=minbase "$suite" "$systems/$suite.partial" >"$systems/$suite.log" || {
		tail -n 5 "$systems/$suite.log" >&2
		exit 1
	}
	mv "$systems/$suite.partial" "$systems/$suite"
fi

system=$(mktemp -d "${TMPDIR:-/tmp}/system-XXXXXX")
trap 'rm -rf --one-file-system "$system"' EXIT
cp -a --reflink=auto "$systems/$suite/." "$system"
cp /etc/resolv.conf "$system/etc/resolv.conf"

# Variables of package clients, and the files that they name.
mkdir "$system/settings"
settings=()
while IFS= read -r -d '' variable; do
	name=${variable%%=*} value=${variable#*=}
	case $name in
	*_proxy | *_PROXY | PIP_* | SSL_CERT_FILE | REQUESTS_CA_BUNDLE | CURL_CA_BUNDLE) ;;
	*) continue ;;
	esac
	if [[ $value == /* ]]; then
		[[ -f $value ]] || continue
		cp "$value" "$system/settings/$name"
		value=/settings/$name
	fi
	settings+=("$name=$value")
done < <(env -0)
apt-config dump | grep -E '^Acquire::https?::(Proxy|CaInfo)' >"$system/etc/apt/apt.conf.d/90host" || true

mkdir "$system/checkout"
git ls-files -z --cached --others --exclude-standard | tar --create --ignore-failed-read --null --files-from=- | tar -x -C "$system/checkout"

# What it mounts and starts is gone with it.
unshare --mount --pid --fork --kill-child --mount-proc -- tests/systems/enter.sh "$system" "${settings[@]}" -- "$@"
