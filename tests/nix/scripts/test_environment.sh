#!/usr/bin/env bash
# Panes have the environment that the server was started in, and nothing of the server's own Python; and what stands
# in it for Python is for the panes alone. Behind all else on PATH is the server's own tmux-debug.
# shellcheck source=tests/tmux-mcp/lib.sh
source "$(dirname "$0")/../tmux-mcp/lib.sh" || exit

# The environment of a build has some of its own.
unset "${!PYTHON@}" "${!NIX_PYTHON@}"
mkdir "$work/modules" "$work/bin"
for module in anyio mcp orjson sitecustomize; do
	echo "raise SystemExit('the server took $module from PYTHONPATH')" >"$work/modules/$module.py"
done
printf '#!/bin/sh\necho theirs\n' >"$work/bin/python"
cp "$work/bin/python" "$work/bin/python3"
printf '#!/bin/sh\nexport PATH=%q PYTHONPATH=%q\nexec %q\n' "$work/bin:$PATH" "$work/modules" "$server" >"$work/server"
chmod +x "$work/bin/"* "$work/server"
server=$work/server

start_server
call run '{"command": "python; python3"}'
equal "$TEXT" $'theirs\ntheirs\n'
call run '{"command": "env | grep -E ^\\(PATH\\|PYTHON.*\\|NIX_PYTHON.*\\)= | sort"}'
expected="PATH=$work/bin:$PATH:/*/bin
PYTHONPATH=$work/modules
"
# shellcheck disable=SC2053  # a pattern
[[ $TEXT == $expected ]] || fail "expected '$expected', got '$TEXT'"
stop_server

pass
