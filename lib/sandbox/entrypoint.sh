#!/bin/bash
# What a container starts with: prepares the home directory, and becomes the command.
set -euo pipefail

# Without a trap, Bash goes on if the program that it waits for ends by itself at that moment.
trap 'exit 130' INT

# The command's PATH may lead elsewhere.
path=$PATH
PATH=/bin

refuse() {
	echo "${TMUX_DEBUG_SANDBOX_NAME-sandbox}: $1 Nothing has run." >&2
	exit 2
}

# Refuses what was put in a mount's place after the launcher had looked at it. The first line is for
# the kernel, each other one has device, inode and place of a mount.
check_mounts() {
	local kernel expected line place found
	kernel=$(cat /proc/sys/kernel/random/boot_id)
	mapfile -t expected <<<"$1"
	[[ ${expected[0]} == "$kernel" ]] || return 0
	for line in "${expected[@]:1}"; do
		place=${line#* }
		found=$(stat --dereference --format=%d:%i -- "$place") ||
			refuse "The sandbox's user can't access $place."
		[[ $found == "${line%% *}" ]] || refuse "What is mounted at $place was replaced just now.\
 If a sandbox runs on a directory above it, end that sandbox first."
	done
}

if [[ -n ${TMUX_DEBUG_SANDBOX_MOUNTS-} ]]; then
	check_mounts "$TMUX_DEBUG_SANDBOX_MOUNTS"
	unset TMUX_DEBUG_SANDBOX_MOUNTS
fi

# Links what is read of the repository of a worktree to where git looks for it.
link_repository() {
	local place=$1 file
	ln -s /var/packed-refs/1 "$place/packed-refs"
	# What is made there would be lost, so it can't be.
	ln -s /run/repository/{lfs,modules,shallow} "$place"
	for file in /run/repository/*; do
		[[ -e $place/${file##*/} || -L $place/${file##*/} ]] || ln -s "$file" "$place"
	done
}

if [[ -n ${TMUX_DEBUG_SANDBOX_REPOSITORY-} ]]; then
	link_repository "$TMUX_DEBUG_SANDBOX_REPOSITORY"
	unset TMUX_DEBUG_SANDBOX_REPOSITORY
fi

# Passes connections to ports of this container on to the sockets of the proxy outside, each by a
# process that does not belong to the command.
forward() {
	local port socket tries
	while (($#)); do
		port=$1 socket=$2
		shift 2
		setsid --fork socat -t 3600 "TCP-LISTEN:$port,bind=127.0.0.1,reuseaddr,fork" \
			"UNIX-CONNECT:/run/proxy/$socket" </dev/null
		tries=0
		until { : <>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null; do
			((++tries < 1000)) || refuse "Port $port inside can't be listened on."
			sleep 0.01
		done
	done
}

if [[ -n ${TMUX_DEBUG_SANDBOX_PORTS-} ]]; then
	# shellcheck disable=SC2086
	forward $TMUX_DEBUG_SANDBOX_PORTS
	unset TMUX_DEBUG_SANDBOX_PORTS
fi

# What listens on these ports is reached from outside by the sockets.
for port in ${TMUX_DEBUG_SANDBOX_PUBLISHED-}; do
	setsid --fork socat -t 3600 "UNIX-LISTEN:/run/inside/$port,fork" "TCP:127.0.0.1:$port" \
		</dev/null
done
unset TMUX_DEBUG_SANDBOX_PUBLISHED

# The variables of development shells, none of which takes the place of one that is set.
if [[ -e /shell-environment ]]; then
	while IFS= read -r -d '' variable; do
		if [[ $variable == PATH=* ]]; then
			path=${variable#PATH=}:$path
		elif [[ $variable =~ ^([a-zA-Z_][a-zA-Z_0-9]*)= && ! -v ${BASH_REMATCH[1]} ]]; then
			export "${variable?}"
		fi
	done </shell-environment
fi

# With a read-only root and no volume for it, the home directory is where one can write.
if [[ ! -w $HOME ]]; then
	export HOME=/tmp/home
	mkdir -p "$HOME"
fi

# Adds what a file has to the client's own, which the client writes: the MCP servers, and all else
# that is not there yet; and that the key is to be used, which the client asks about by the key's
# end. At any moment that file is whole, also where several containers have one home directory.
add_settings() {
	local target new
	# Another container may be first.
	[[ -e $2 ]] || (set -o noclobber && echo '{}' >"$2") || true
	target=$(realpath "$2")
	new=$(mktemp "$target.XXXXXX")
	# shellcheck disable=SC2016
	if ! jq -n --slurpfile ours "$1" --slurpfile theirs "$target" '
		if ($theirs | length) > 1 then error("there is more than one value")
			else $theirs[0] // {} end
		| if type == "object" and (.mcpServers // {} | type) == "object" then .
			else error("this is not a configuration") end
		| . * ($ours[0] * .)
		| if $ours[0].mcpServers then .mcpServers += $ours[0].mcpServers else . end
		| if $ours[0].hasCompletedOnboarding and $ENV.ANTHROPIC_API_KEY
			then .customApiKeyResponses.approved |=
				(. // [] | . + [$ENV.ANTHROPIC_API_KEY[-20:]] | unique)
			else . end' >"$new"; then
		rm "$new"
		echo "entrypoint: can't add settings to $2, which was not changed." \
			"If Claude Code didn't write it, fix it or move it away." >&2
		exit 1
	fi
	chmod --reference="$target" "$new"
	mv -f "$new" "$target" 2>/dev/null || {
		# A file that is a mount can't be replaced.
		cat "$new" >"$target"
		rm "$new"
	}
}

# Makes links, so that a home directory that is kept has no files of an older image. What is not
# such a link stays.
shopt -s globstar dotglob
for file in /etc/skel/**; do
	target=$HOME/${file#/etc/skel/}
	if [[ -d $file ]]; then
		mkdir -p "$target"
	elif [[ $file == *.json ]]; then
		add_settings "$file" "$target"
	elif [[ ! -e $target || $(readlink "$target") == /etc/skel/* ]]; then
		ln -sfn "$file" "$target"
	fi
done

# Claude Code keeps its sessions here.
if [[ -n ${TMUX_DEBUG_SANDBOX_SESSIONS-} ]]; then
	mkdir -p "/workspace/$TMUX_DEBUG_SANDBOX_SESSIONS" "$HOME/.claude"
	if [[ -L $HOME/.claude/projects || ! -e $HOME/.claude/projects ]]; then
		ln -sfn "/workspace/$TMUX_DEBUG_SANDBOX_SESSIONS" "$HOME/.claude/projects"
	else
		echo "entrypoint: ~/.claude/projects has its own sessions, so new ones are not kept in" \
			"the project. Move that directory away." >&2
	fi
	unset TMUX_DEBUG_SANDBOX_SESSIONS
fi

unset TMUX_DEBUG_SANDBOX_NAME
PATH=$path
trap - INT
exec "$@"
