#!/usr/bin/env bash
# Follows the README in a system of its own: a newcomer's two commands.
#
#   inside.sh prepare             as root in a bare system; this installs what the tests need
#   inside.sh test [ARGUMENT...]  in a prepared one as an ordinary user, in odd surroundings; arguments go to pytest
set -euo pipefail

say() { printf '\n== %s\n' "$*"; }

# shellcheck source=/dev/null
. /etc/os-release
action=$1
shift
case $action in
prepare)
	say "$PRETTY_NAME: root, in a bare system"
	# Debian's Python is what the README takes for granted; git is not needed.
	apt-get -qq update
	DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends python3 ca-certificates >/dev/null
	cp -a /checkout /root/tmux-debug-mcp
	cd /root/tmux-debug-mcp
	HOME=/root ./dev demo
	HOME=/root ./dev test tests/test_dev.py
	useradd --create-home --shell /bin/bash newcomer
	mkdir /home/newcomer/.cache
	[[ ! -d /root/.cache/pip ]] || mv /root/.cache/pip /home/newcomer/.cache
	chown -R newcomer: /home/newcomer
	rm -rf /root/tmux-debug-mcp
	apt-get clean
	;;
test)
	say "$PRETTY_NAME: an ordinary user, in odd surroundings"
	clone="/home/newcomer/it's my clone"
	cp -a /checkout "$clone"
	tmpdir=/home/newcomer/$(printf 'a-very-long-name-%.0s' 1 2 3 4 5 6)
	mkdir "$tmpdir"
	chown -R newcomer: "$clone" "$tmpdir"
	cd "$clone"
	as_user=(setpriv --reuid newcomer --regid newcomer --init-groups
		env HOME=/home/newcomer USER=newcomer SHELL=/bin/bash)
	"${as_user[@]}" ./dev demo
	"${as_user[@]}" TMPDIR="$tmpdir" ./dev test "$@"
	;;
esac
