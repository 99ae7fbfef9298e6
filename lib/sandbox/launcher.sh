# shellcheck shell=bash disable=SC2154
# Runs a command in a container. launcher.nix sets before: `image`, its name; `stream`, a program that writes it; `flags`
# for podman, and `more` of them, which come last; and `mounts`, of four words each: source, destination, ro or rw,
# optional or required.

usage() {
	cat <<'TEXT'
usage: tmux-debug-sandbox [--podman-arg ARG]... [DIR [COMMAND [ARGUMENT]...]]

Runs COMMAND in a container that has DIR, or else the current directory, at /workspace, and no other of your files.
Without COMMAND, it is the sandbox's agent, or else a shell.

  --podman-arg ARG   one more argument for `podman run`; each word of TMUX_DEBUG_SANDBOX_PODMAN_ARGS is one, too
TEXT
}

fail() {
	printf 'tmux-debug-sandbox: %s\n' "$*" >&2
	exit 2
}

# Arguments for podman from the environment, then those from the command line.
IFS=$' \t\n' read -r -d '' -a words <<<"${TMUX_DEBUG_SANDBOX_PODMAN_ARGS-}" || true # there is no NUL to end it
more+=("${words[@]}")
while (($#)); do
	case $1 in
	--podman-arg)
		(($# > 1)) || fail "--podman-arg needs an argument."
		more+=("$2")
		shift
		;;
	--podman-arg=*) more+=("${1#*=}") ;;
	-h | --help)
		usage
		exit
		;;
	-*) fail "Unknown option: $1. Known: --podman-arg, --help. A directory of that name is ./$1" ;;
	*) break ;;
	esac
	shift
done

[[ -d ${1-.} ]] || fail "'$1' is no directory. The first argument is the directory for /workspace; the command follows it."
[[ ${1-} != *[$'\n\r']* ]] || fail "The name of the directory has a line feed in it, which podman can't take. Rename it."
dir=$(realpath "${1-.}")
shift $(($# > 0))
command -v podman >/dev/null || fail "podman is missing. Install it, for instance: sudo apt-get install podman uidmap"

homes=("${HOME-}")
user=$EUID
# The user in the container is whoever runs this; or, where that is root, whoever has the directory.
if ((EUID)); then
	flags+=("--userns=keep-id:uid=1000,gid=1000")
else
	read -r user group < <(stat --format='%u %g' "$dir")
	while IFS=: read -r _ _ number _ _ home _; do
		[[ $number != "$user" ]] || homes+=("$home")
	done </etc/passwd
	flags+=("--user=$user:$((group ? group : user))")
fi

for home in "${homes[@]}"; do
	[[ -z $home || $(realpath -m "$home")/ != "${dir%/}"/* ]] ||
		fail "'$dir' has all of a home directory in it. Choose the directory of a project."
done

((user)) || fail "'$dir' belongs to root, as whom nothing runs in the sandbox. Give it to a user: chown -R 1000:1000 '$dir'"

# What podman takes is a record of CSV.
add_mount() { flags+=("--mount=type=bind,\"source=${1//\"/\"\"}\",\"destination=${2//\"/\"\"}\",$3"); }
add_mount "$dir" /workspace rw
memory=("--tmpfs=/home/sandbox")
for ((i = 0; i < ${#mounts[@]}; i += 4)); do
	source=${mounts[i]}
	[[ $source != "~"* || -n ${HOME-} ]] || fail "'$source' is to be mounted, and HOME is not set."
	source=${source/#"~"/"${HOME-}"}
	if [[ -e $source ]]; then
		add_mount "$source" "${mounts[i + 1]}" "${mounts[i + 2]}"
		[[ ${mounts[i + 1]} != /home/sandbox ]] || memory=()
	elif [[ ${mounts[i + 3]} == required ]]; then
		fail "'$source' is to be mounted and does not exist. Make it, or let the mount be \`optional\`."
	fi
done

if [[ -t 0 && -t 1 ]]; then
	flags+=(--tty "--env=TERM=${TERM-xterm-256color}" --env=COLORTERM)
fi

if ! podman image exists "$image"; then
	echo "tmux-debug-sandbox: loading the image" >&2
	log=$(mktemp)
	if ! "$stream" 2>"$log" | podman load --quiet >&2; then
		cat "$log" >&2
		rm "$log"
		exit 1
	fi
	rm "$log"
fi

# Where podman is killed, or told to end before it listens, the container would go on: a process that outlives podman
# removes it then.
name=tmux-debug-sandbox-$$-$(date +%s%N)
setsid "$BASH" -c "tail --pid=$$ --follow /dev/null
	for ((tries = 0; tries < 20; tries++)); do
		podman container exists $name || break
		podman rm --force --time=0 $name
		sleep 0.2
	done" </dev/null >/dev/null 2>&1 &
# Here no file can be made. Where a container runs out of memory, podman's monitor would make one, following links that
# what runs in the container has made.
cd /proc || exit
exec podman run "${flags[@]}" "--name=$name" "${memory[@]}" "${more[@]}" "$image" "$@"
