#!/usr/bin/env bash
# Follows the README in a bare system: a newcomer's two commands, as root and as an ordinary user. Root runs a part of the
# tests; root and user both run those that the arguments name.
set -euo pipefail

# Where root is another case than an ordinary user: set-up, options, shells, processes and how they end.
part_of_root=(tests/test_dev.py tests/unit/test_linux.py tests/integration/test_shells.py
	tests/stdio/test_command.py tests/stdio/test_ending.py tests/stdio/test_killing.py)
(($# == 0)) || part_of_root=("$@")

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
HOME=/root ./dev test "${part_of_root[@]}" || status=$?

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
"${as_user[@]}" TMPDIR="$tmpdir" ./dev test "$@" || status=$?
exit "$status"
