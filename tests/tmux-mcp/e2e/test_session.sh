#!/usr/bin/env bash
# A person's session: what is said at the start and at the end, the prompt, the tools, the audit.
# shellcheck disable=SC2016
# shellcheck source=tests/tmux-mcp/e2e/lib.sh
source "$(dirname "$0")/lib.sh" || exit

export XDG_STATE_HOME=$work/state
ended() { cat "$XDG_STATE_HOME"/tmux-debug-sandbox/*-end.log; }
# At a terminal, with these lines typed.
at_terminal() {
	local command=$1
	shift
	{
		sleep 2
		printf '%s\n' "$@"
	} | script --quiet --return --command "$command" /dev/null | tr -d '\r'
}

# Where one is, and how to leave. A command that is given is not told that.
shown=$(at_terminal "$SANDBOX_BASE $ws" 'echo $((6 * 7))' exit)
contains "$shown" "tmux-debug-sandbox: $ws is /workspace; the"
contains "$shown" "; nothing is protected; \`exit\` leaves."
contains "$shown" $'sandbox\e[0m /workspace $ '
contains "$shown" 42
lacks "$(at_terminal "$SANDBOX_BASE $ws echo hello")" "is /workspace"
equal "$(in_sandbox "$ws" cat /etc/hosts)" $'127.0.0.1 localhost sandbox\n::1 localhost'
contains "$(in_sandbox --podman-arg=--add-host=there:10.0.0.1 "$ws" cat /etc/hosts)" "10.0.0.1"$'\t'there

# What a debugger expects.
equal "$(in_sandbox "$ws" sh -c 'file --brief --mime-type /entrypoint.sh; strace -qq -e trace=none true && lsof -v 2>/dev/null; "$EDITOR" --version | grep -o "GNU nano"')" \
	$'text/x-shellscript\nGNU nano'
contains "$("$SANDBOX_PYTHON" "$ws" gdb --batch --eval-command='print 6 * 7' 2>&1)" '$1 = 42'

# What was made is told before the command returns, also where no terminal is, and is kept. Its status is that of the command.
# Without what podman says of this machine.
told() { "$@" 2>&1 >/dev/null | grep --invert-match '^Resource limits' || true; }
status=0
in_sandbox "$ws" sh -c 'echo >/workspace/.envrc; exit 7' 2>"$work/errors" || status=$?
equal "$status $(grep --invert-match "^Resource limits" "$work/errors")" "7 tmux-debug-sandbox: made or changed since the sandbox started: '.envrc'. Check them before anything runs them."
equal "$(ended | cut -d ' ' -f 2-)" "'$ws': made or changed since the sandbox started: '.envrc'. Check them before anything runs them."
rm -rf "$XDG_STATE_HOME"
# Where nothing was, nothing is told nor kept.
equal "$(told in_sandbox "$ws" true)" ""
[[ ! -e $XDG_STATE_HOME ]] || fail "there is a file about nothing"
# If the launcher is killed, what outlives it keeps it.
: >"$work/started"
"$SANDBOX_BASE" "$ws" sh -c 'echo >/workspace/flake.nix; echo made; exec sleep 1000' </dev/null >"$work/started" 2>/dev/null &
until [[ -s $work/started ]]; do sleep 0.05; done
kill -KILL $!
for ((tries = 0; tries < 200; tries++)); do
	! ended >/dev/null 2>&1 || break
	sleep 0.05
done
contains "$(ended)" "made or changed since the sandbox started: 'flake.nix'."
until_no_container "the launcher's death"
# There may be no input, and nobody to tell.
equal "$(timeout 60 "$SANDBOX_BASE" "$ws" cat <&-)" ""
status=0
in_sandbox "$ws" sh -c 'echo >/workspace/HEAD; exit 3' 2>&- || status=$?
equal "$status" 3
rm "$ws/HEAD"
# Of very many, some are named; they are too many to be protected.
told=$(told in_sandbox "$ws" bash -c 'mkdir -p .claude; for i in {1..5000}; do : >.claude/settings$i.json; done')
contains "$told" "'.claude/settings1.json'"
contains "$told" " and 4980 more. Check them"
refused "More than 4000 paths would be protected" "$ws" true
rm -r "$ws/.claude"
# A program can't go on long without its terminal.
: >"$work/started"
"$SANDBOX_BASE" "$ws" sh -c 'trap "" HUP; echo started; exec sleep 1000' </dev/null >"$work/started" 2>/dev/null &
until [[ -s $work/started ]]; do sleep 0.05; done
kill -HUP $!
wait $! || true
until_no_container "the terminal's end"
# Where the sandbox could write it, there is no file.
mkdir "$ws/state"
((EUID)) || chown "$owner" "$ws/state"
equal "$(XDG_STATE_HOME=$ws/state told in_sandbox "$ws" sh -c 'echo >/workspace/shell.nix')" \
	"tmux-debug-sandbox: made or changed since the sandbox started: 'shell.nix'. Check them before anything runs them."
equal "$(ls "$ws/state")" ""

# The audit has what the main session does in terminals, not only the subagent.
rm -f "$ws/.debug-audit.log"
in_sandbox "$ws" sh -c 'tmux-debug run "echo from the main session"; tmux-debug stop' >/dev/null 2>&1
contains "$(<"$ws/.debug-audit.log")" 'from the main session'

# What can't run is refused before an image is loaded, and what fails then is said in one line.
images=$(podman images --quiet | sort -u)
podman rmi --all --force >/dev/null
WRAPIX_NETWORK=closed refused "WRAPIX_NETWORK is 'closed'" "$ws" true
refused "podman is given --detach, which is for this launcher alone." --podman-arg=--detach "$ws" true
lacks "$(<"$work/errors")" loading
mkdir "$work/bin"
printf '#!/bin/sh\n[ "$1" != load ] || { echo "no space left" >&2; exit 125; }\nexec %s "$@"\n' "$(type -P podman)" >"$work/bin/podman"
chmod +x "$work/bin/podman"
PATH=$work/bin:$PATH refused "The image can't be loaded: no space left" "$ws" true
equal "$(wc -l <"$work/errors")" 2
[[ -n $images ]] || fail "there were no images"

pass
