#!/usr/bin/env bash
# What is in the image, and that the launcher runs what it is told.
# shellcheck disable=SC2016
# shellcheck source=tests/tmux-mcp/e2e/lib.sh
source "$(dirname "$0")/lib.sh" || exit

contains "$(in_sandbox "$ws" tmux -V)" "tmux 3."
contains "$(in_sandbox "$ws" tmux-debug-mcp --version)" "tmux-debug-mcp 0."
equal "$(in_sandbox "$ws" bash -c 'id -u; whoami; pwd; echo $HOME')" $'1000\nsandbox\n/workspace\n/home/sandbox'

# The subagent has the server; the main session has nothing, and neither has the project.
equal "$(in_sandbox "$ws" find /home/sandbox /workspace ! -type d | sort)" $'/home/sandbox/.bashrc\n/home/sandbox/.claude.json\n/home/sandbox/.claude/agents/tmux-debug.md'
agent=$(in_sandbox "$ws" cat /home/sandbox/.claude/agents/tmux-debug.md)
contains "$agent" $'mcpServers:\n  - tmux-debug: {'
contains "$agent" '"env":{"TMUX_DEBUG_AUDIT":"/workspace/.debug-audit.log","TMUX_DEBUG_KEEP":"30m"}'
lacks "${agent%%mcpServers*}" tmux_

# Whoever passes a key in is not asked whether it is to be used, nor what a client asks at its first start.
equal "$(in_sandbox --podman-arg=--env=ANTHROPIC_API_KEY=key "$ws" jq -c '[.hasCompletedOnboarding, .customApiKeyResponses, .projects]' /home/sandbox/.claude.json)" \
	'[true,{"approved":["key"]},{"/workspace":{"hasTrustDialogAccepted":true}}]'

# Programs find certificates where they look for them.
equal "$(in_sandbox "$ws" bash -c 'cd /etc/ssl/certs; head -qn 1 * $SSL_CERT_FILE | sort | uniq -c | tr -s " "')" " 3 -----BEGIN CERTIFICATE-----"
# A PATH of one's own is for the command.
equal "$(in_sandbox --podman-arg --env=PATH=/nowhere "$ws" /bin/bash -c 'echo $PATH')" /nowhere

# Arguments, input, output and exit code are those of the command.
equal "$(in_sandbox "$ws" printf '<%s>' 'a  b' '' "it's" '"$HOME"' $'x\ny')" $'<a  b><><it\'s><"$HOME"><x\ny>'
equal "$(printf 'in\n' | in_sandbox "$ws" cat)" in
status=0
in_sandbox "$ws" sh -c 'exit 37' || status=$?
equal "$status" 37
# Without a command it is a shell, and without a directory the current one.
equal "$(cd "$ws" && echo 'echo "$0 in $PWD"' | in_sandbox)" "/bin/bash in /workspace"
# Zombies are taken over.
equal "$(in_sandbox "$ws" bash -c '(sleep 0.1 & exec true); sleep 0.3; ps -eo stat= | grep -c Z' || true)" 0

# Flags for podman, by option and environment, and one that is not a flag of ours.
equal "$(in_sandbox --podman-arg --env=A=1 --podman-arg=--env=B=2 "$ws" bash -c 'echo $A$B')" 12
export TMUX_DEBUG_SANDBOX_PODMAN_ARGS+=" --env=C=3"
equal "$(in_sandbox "$ws" bash -c 'echo $C')" 3

# A directory of any name.
odd="$ws/a,b \"c\":d"
mkdir "$odd"
((EUID)) || chown "$owner" "$odd"
in_sandbox "$odd" touch made
[[ -e $odd/made ]] || fail "the odd directory is not /workspace"

# Where the home directory is kept, files of its user stay, and links to files that an older image had go nowhere.
mkdir -p "$work/home/.claude/agents"
echo mine >"$work/home/.claude/agents/tmux-debug.md"
((EUID)) || chown -R "$owner" "$work/home"
equal "$(in_sandbox --podman-arg "--volume=$work/home:/kept" --podman-arg --env=HOME=/kept "$ws" cat /kept/.claude/agents/tmux-debug.md)" mine
# Where there is no place for it, it is in /tmp.
contains "$(in_sandbox --podman-arg --env=HOME=/nowhere "$ws" bash -c 'echo $HOME; ls $HOME/.claude/agents')" $'/tmp/home\ntmux-debug.md'

# Whatever is in our environment, nothing of it comes in.
equal "$(https_proxy=http://user:password@proxy FTP_PROXY=x OURS=x in_sandbox "$ws" env | grep -ci -e proxy -e OURS || true)" 0

# However the launcher ends, the container does.
for end in TERM INT HUP KILL; do
	: >"$work/started"
	# In the background, a shell's programs ignore one of them.
	env --default-signal=INT "$SANDBOX_BASE" "$ws" sh -c 'echo started; exec sleep 1000' </dev/null 2>/dev/null >"$work/started" &
	# The first process of a container that has no handler yet gets no signals from outside.
	until [[ -s $work/started ]]; do
		kill -s 0 $! || fail "the launcher has ended"
		sleep 0.1
	done
	kill -s "$end" $!
	wait $! || true # its status is that of the signal
	until_no_container "$end"
done

# A container that runs out of memory makes no file, neither in the project nor where that leads.
ln -s "$work/victim" "$ws/oom"
(cd "$ws" && in_sandbox --podman-arg --memory=64m . bash -c 'head -c 200m /dev/zero | tail | wc -c') >/dev/null 2>&1 || true # where there are limits
[[ ! -e $work/victim ]] || fail "a file of the host was made"

# Images that a launcher has loaded and Nix has collected are removed when one is loaded, and no others.
images() { podman images --filter 'reference=localhost/tmux-debug-sandbox*' --format '{{.Repository}}:{{.Tag}}' | grep -e base: -e sandbox: | sort -u; }
image=$(sed -n 's/^ *image=\(localhost.*\)/\1/p' "$(readlink -f "$SANDBOX_BASE")")
expected=$(images)
collected=00000000000000000000000000000000
podman tag "$image" "${image%:*}:$collected" "localhost/tmux-debug-sandbox:$collected" "${image%:*}:11111111111111111111111111111111"
podman rmi "$image" >/dev/null
in_sandbox "$ws" true 2>/dev/null
equal "$(images)" "$(printf '%s\n' "$expected" "${image%:*}:11111111111111111111111111111111" | sort -u)"
podman rmi "${image%:*}:11111111111111111111111111111111" >/dev/null

# Mistakes.
refused "'$work/none' is not a directory" "$work/none" true
refused "Unknown option: --volume" --volume /:/host "$ws" true
refused "--podman-arg needs an argument" --podman-arg
refused "contains a whole home directory" / true
HOME=$ws refused "contains a whole home directory" "$ws" true
HOME=$ws/deep/home refused "contains a whole home directory" "$ws" true
ln -s "$ws" "$work/link"
HOME=$work/link refused "contains a whole home directory" "$ws" true
HOME=$work//./ws refused "contains a whole home directory" "$work/./ws" true
mkdir "$ws"/$'odd\n'
refused "contains a line feed" "$ws"/$'odd\n' true
(cd "$ws"/$'odd\n' && refused "contains a line feed")
PATH=/nowhere refused "podman is missing" "$ws" true
if ((EUID == 0)); then
	mkdir "$work/roots"
	refused "belongs to root" "$work/roots" true
fi
contains "$(in_sandbox --help)" "usage: tmux-debug-sandbox"

# The image is loaded once, and what its maker says of that is said where it fails only.
lacks "$(in_sandbox "$ws" true 2>&1)" loading
podman images --quiet tmux-debug-sandbox-base | xargs podman rmi --force >/dev/null
loaded=$(in_sandbox "$ws" true 2>&1 >/dev/null)
contains "$loaded" "loading the image"
lacks "$loaded" "Creating layer"

pass
