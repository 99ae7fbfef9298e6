#!/usr/bin/env bash
# Follows the README in a bare system, as its root: a newcomer's two commands, as root and as an ordinary user.
set -euo pipefail

say() { printf '\n== %s\n' "$*"; }

# shellcheck source=/dev/null
. /etc/os-release
say "$PRETTY_NAME: root"
# Debian's Python is what the README takes for granted; git is not needed.
apt-get -qq update
DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends python3 ca-certificates >/dev/null
cp -a /checkout /root/tmux-debug-mcp
cd /root/tmux-debug-mcp
HOME=/root ./dev demo
status=0
HOME=/root DEV_WITHOUT_LARGE_PROGRAMS=1 ./dev test "$@" || status=$?

say "$PRETTY_NAME: an ordinary user, in odd surroundings"
useradd --create-home --shell /bin/bash newcomer
clone="/home/newcomer/it's my clone"
cp -a /checkout "$clone"
tmpdir=/home/newcomer/$(printf 'a-very-long-name-%.0s' 1 2 3 4 5 6)
mkdir "$tmpdir"
chown -R newcomer: /home/newcomer
cd "$clone"
as_user=(setpriv --reuid newcomer --regid newcomer --init-groups env HOME=/home/newcomer USER=newcomer SHELL=/bin/bash)
"${as_user[@]}" ./dev demo
"${as_user[@]}" DEV_WITHOUT_LARGE_PROGRAMS=1 TMPDIR="$tmpdir" ./dev test "$@" || status=$?
exit "$status"
