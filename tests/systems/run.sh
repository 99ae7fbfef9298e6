#!/usr/bin/env bash
# Runs the README's commands on another release of Debian or Ubuntu, as an ordinary user in odd surroundings.
# ./dev test-on calls it, as root.
#
#   tests/systems/run.sh SUITE [ARGUMENT...]   arguments go to pytest
#
# debootstrap makes a bare system once. In a copy of it, root follows the README (inside.sh), which installs what the
# tests need; that copy is kept until what it is made from changes. A run leaves it as it is: what the run changes is in
# a directory of its own. Packages come from where this machine gets them: what tells package clients of proxies and
# certificates is passed on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

suite=${1?"which release? For instance: trixie"}
shift

# enter SYSTEM BELOW WORD...: run inside.sh with these words in a system, with this checkout. BELOW is a system that it
# changes, or nothing.
enter() {
	local system=$1 below=$2 settings=() variable name value
	shift 2
	mkdir -p "$system/settings" "$system/checkout" "$system/etc/apt/apt.conf.d"
	cp /etc/resolv.conf "$system/etc/resolv.conf"
	# Variables of package clients, and the files that they name.
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
	git ls-files -z --cached --others --exclude-standard |
		tar --create --ignore-failed-read --null --files-from=- | tar -x -C "$system/checkout"
	# What it mounts and starts is gone with it.
	unshare --mount --pid --fork --kill-child --mount-proc -- tests/systems/enter.sh "$system" "$below" "${settings[@]}" -- \
		"$@"
}

systems=${XDG_CACHE_HOME:-$HOME/.cache}/tmux-debug-mcp/systems
bare=$systems/$suite
if [[ ! -d $bare ]]; then
	echo "making a bare $suite in $systems" >&2
	mkdir -p "$systems"
	rm -rf "$bare.partial"
	debootstrap --variant=minbase "$suite" "$bare.partial" >"$bare.log" || {
		tail -n 5 "$bare.log" >&2
		exit 1
	}
	mv "$bare.partial" "$bare"
fi

made_from=$(cat dev pyproject.toml tests/systems/* | sha256sum)
prepared=$systems/prepared/$suite/${made_from:0:16}
if [[ ! -d $prepared ]]; then
	rm -rf --one-file-system "$systems/prepared/$suite"
	mkdir -p "$prepared.partial"
	cp -a --reflink=auto "$bare/." "$prepared.partial"
	enter "$prepared.partial" "" prepare
	rm -r "$prepared.partial/settings" "$prepared.partial/checkout"
	mv "$prepared.partial" "$prepared"
fi

changes=$(mktemp -d "${TMPDIR:-/tmp}/system-XXXXXX")
trap 'rm -rf --one-file-system "$changes"' EXIT
enter "$changes/root" "$prepared" test "$@"
