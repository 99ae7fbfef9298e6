#!/usr/bin/env bash
# A profile with all that a sandbox can add to it: what each part brings is there, and works together.
# shellcheck disable=SC2016
# shellcheck source=tests/tmux-mcp/e2e/lib.sh
source "$(dirname "$0")/lib.sh" || exit

# SANDBOX_FULL: the profile rust, with a package, a variable, mounts and an agent (tests/nix/e2e.nix).
cat >"$ws/main.rs" <<'RUST'
fn main() {
    let numbers: Vec<i32> = std::env::args().skip(1).map(|text| text.parse().unwrap()).collect();
    println!("the sum is {}", numbers.iter().sum::<i32>());
}
RUST
export HOME=$work/home
mkdir "$HOME"
echo "settings of the host" >"$HOME/settings"
((EUID)) || chown -R "$owner" "$HOME"

start_server_in "$SANDBOX_FULL" "$ws" tmux-debug-mcp
run 'cargo --version && cargo clippy --version && rustfmt --version && gdb --version'
contains "$TEXT" "cargo 1."
contains "$STATUS" "code 0"
run 'rustc -g -o /tmp/sum main.rs && /tmp/sum 1 2 39'
equal "$TEXT" $'the sum is 42\n'
# A crash, debugged as an agent does: the backtrace tells the line.
call create_pane '{"name": "crash", "command": "/tmp/sum 1 two", "wait_for": "never"}'
contains "$STATUS" "exited with code 101"
call capture_pane '{"pane_id": "crash"}'
contains "$TEXT" "main.rs:2"
contains "$TEXT" "stack backtrace"
# The base profile's programs, the package, the variables, and the mounts.
run 'git --version && jq --version && dash -c "echo a package" && echo $GREETING $CARGO_HOME'
contains "$TEXT" $'a package\nhello from nix /workspace/.cargo\n'
run which
equal "$TEXT" $'another which\n'
run 'echo "$ODD"'
equal "$TEXT" $'a, "b" $HOME ~\n'
run 'cat ~/settings; echo more >>~/settings; ls ~/optional'
contains "$TEXT" "settings of the host"
contains "$TEXT" "Read-only file system"
contains "$TEXT" "No such file or directory"
stop_server
mkdir "$HOME/optional, \"odd\" \$HOME"
((EUID)) || chown -R "$owner" "$HOME"
"$SANDBOX_FULL" "$ws" touch /home/sandbox/optional/made
[[ -e "$HOME/optional, \"odd\" \$HOME/made" ]] || fail "the optional mount is not there"

# Who commits is known, and what Claude Code keeps of its sessions is in the project.
equal "$("$SANDBOX_FULL" "$ws" bash -c 'git var GIT_AUTHOR_IDENT; echo said >~/.claude/projects/session' | cut -d " " -f 1-3)" "A. Developer <a@example.com>"
equal "$(<"$ws/.claude/sessions/session")" said
equal "$("$SANDBOX_FULL" "$ws" bash -c 'cat ~/.claude/projects/session; env | grep -c SESSIONS')" $'said\n0'
# The hosts of a profile are not enforced where nobody has asked for it.
if answer=$(WRAPIX_NETWORK=limit "$SANDBOX_FULL" "$ws" true 2>&1); then fail "expected an error"; fi
contains "$answer" "WRAPIX_NETWORK=limit needs a proxy, but this sandbox was made without one."

# What packages from PyPI want that no package brings.
equal "$("$SANDBOX_PYTHON" "$ws" bash -c 'uv venv --quiet --python $(realpath /bin/python3) /tmp/own && /tmp/own/bin/python -c "import ctypes; print(*map(ctypes.CDLL, [\"libstdc++.so.6\", \"libz.so.1\"]))" | grep -o libz.so.1')" libz.so.1

# The limit of processors, where the kernel has it.
if ! "$SANDBOX_FULL" "$ws" true 2>&1 | grep -q "Resource limits are not supported"; then
	equal "$("$SANDBOX_FULL" "$ws" bash -c 'cat /sys/fs/cgroup/{cpu.max,cpu/cpu.cfs_quota_us} 2>/dev/null | cut -d " " -f 1')" 100000
fi

# The agent is what runs where no command is given.
equal "$("$SANDBOX_FULL" "$ws")" "the agent in /workspace"

rm "$HOME/settings"
if answer=$("$SANDBOX_FULL" "$ws" true 2>&1); then fail "expected an error"; fi
contains "$answer" "'$HOME/settings' can't be mounted: it does not exist"

# SANDBOX_KEPT: the server is for the main session, and the home directory is one of the host. What the client has
# written there stays, and gets our server.
mkdir "$HOME/kept"
((EUID)) || chown "$owner" "$HOME/kept"
part() {
	"$python" -c 'import json, sys; print(*json.load(open(sys.argv[1]))[sys.argv[2]])' "$HOME/kept/.claude.json" "$1"
}
"$SANDBOX_KEPT" "$ws" true
equal "$(part mcpServers)" tmux-debug
echo '{"theme": "dark", "mcpServers": {"other": {"command": "other"}}}' >"$HOME/kept/.claude.json"
"$SANDBOX_KEPT" "$ws" true
equal "$(part mcpServers)" "other tmux-debug"
equal "$(part theme)" "d a r k"
# Several at once do not harm each other's.
for _ in {1..5}; do
	"$SANDBOX_KEPT" "$ws" true &
done
wait
equal "$(part mcpServers)" "other tmux-debug"
equal "$(part theme)" "d a r k"
equal "$(find "$HOME/kept" -maxdepth 1 -name '.claude.json*')" "$HOME/kept/.claude.json"
# On a full disk it stays as it is.
"$SANDBOX_KEPT" --podman-arg --mount=type=tmpfs,destination=/small,tmpfs-size=16k,tmpfs-mode=1777 "$ws" bash -c '
	export HOME=/small
	echo "{\"theme\": \"dark\"}" >/small/.claude.json
	head -c 64k /dev/zero >/small/fill 2>/dev/null
	! /entrypoint.sh true && cat /small/.claude.json' >"$work/output" 2>"$work/errors"
equal "$(<"$work/output")" '{"theme": "dark"}'
contains "$(<"$work/errors")" "No space left"
# What is empty gets them, and what is no such file stays as it is.
: >"$HOME/kept/.claude.json"
"$SANDBOX_KEPT" "$ws" true
equal "$(part mcpServers)" tmux-debug
echo '{"mcpServers": ["mine"]}' >"$HOME/kept/.claude.json"
if answer=$("$SANDBOX_KEPT" "$ws" true 2>&1); then fail "expected an error"; fi
equal "$(<"$HOME/kept/.claude.json")" '{"mcpServers": ["mine"]}'
echo '["mine"]' >"$HOME/kept/.claude.json"
if answer=$("$SANDBOX_KEPT" "$ws" true 2>&1); then fail "expected an error"; fi
contains "$answer" "can't add settings to /home/sandbox/.claude.json"
equal "$(<"$HOME/kept/.claude.json")" '["mine"]'

pass
